import org.apache.kafka.common.message.ApiMessageType;

/** Prints the versions of the headers of every API in every version: API key, version, those of request and response. */
public final class HeaderTable {
    public static void main(String[] arguments) {
        for (ApiMessageType api : ApiMessageType.values()) {
            for (short version = api.lowestSupportedVersion(); version <= api.highestSupportedVersion(false); version++) {
                System.out.printf("%d %d %d %d%n", api.apiKey(), version,
                    api.requestHeaderVersion(version), api.responseHeaderVersion(version));
            }
        }
    }
}

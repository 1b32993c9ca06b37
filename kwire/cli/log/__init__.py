"""`kwire log`: looking into the files of logs.

group     the command and its subcommands, each imported only when it is used
dump      `kwire log dump`: a file line by line; contents reads it, decoded has the records of internal topics
verify    `kwire log verify`: is all as it should be
sizes     `kwire log sizes`: how much lies where
"""

"""The command line: `kwire serve`, `kwire topics`, `kwire produce`, `kwire consume`, ...

app       the command and its subcommands, each imported only when it is used
running   how a subcommand runs: errors as one line, exit codes, Ctrl-C, closed pipes
output    tables for people, tab-separated lines for pipes, JSON on request
"""

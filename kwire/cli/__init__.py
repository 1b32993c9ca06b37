"""The command line: `kwire serve`, `kwire topics`, `kwire produce`, `kwire consume`, ...

app       the command and its subcommands, each imported only when it is used
commands  Click's commands as kwire has them: help, guesses, imports, errors
running   how a subcommand runs and ends: errors as one line, exit codes, Ctrl-C, closed pipes
output    tables for people, tab-separated lines for pipes, JSON on request
options   what subcommands have in common: where the cluster is, and in what format
serve, config, topics, groups, produce, consume, version   a subcommand each, thin
consume_in_group   what `consume --group` does
serve_options   the options of `serve`, once, for Click (serve_command) and for the short way in
log/   `kwire log`, a subcommand each
import_command, export_command   `kwire import`, `kwire export`
formats, positions, resets   what the subcommands print, where they begin to read, and groups to go on
progress, byte_sizes   a bar while it takes long; numbers of bytes for people
"""

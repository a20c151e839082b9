"""`python -m gb300serve`, and the entry point of the installed program."""

import os

try:
    from gb300serve.cli.app import main
except KeyboardInterrupt:
    os.write(2, b"gb300serve: interrupted\n")
    os._exit(130)  # cli/app handles Ctrl-C once it is loaded, which takes 0.1 s

if __name__ == "__main__":
    main()

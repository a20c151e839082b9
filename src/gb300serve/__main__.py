"""`python -m gb300serve`, and what the installed program calls."""

import gc
import os

# Short-lived commands have no garbage worth collecting, and importing makes the collector run 30 times (15 ms). Verbs
# that stay switch it on again (cli/services, cli/linting).
gc.disable()

try:
    from gb300serve.cli.app import main
except KeyboardInterrupt:
    os.write(2, b"gb300serve: interrupted\n")
    os._exit(130)  # as cli/app answers Ctrl-C once it is loaded, which takes a quarter of a second

if __name__ == "__main__":
    main()

"""`python -m gb300serve`, and what the installed program calls."""

import gc

# Short-lived commands have no garbage worth collecting, and importing makes the collector run 30 times (15 ms). Verbs
# that stay switch it on again (cli/services, cli/linting).
gc.disable()

from gb300serve.cli.app import main  # noqa: E402 - imported with the collector off

if __name__ == "__main__":
    main()

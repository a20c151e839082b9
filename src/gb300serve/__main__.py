"""`python -m gb300serve`."""

from gb300serve.cli.app import main

main()

"""Whether this is the long run (`scripts/test --long`): every kind of test runs always, here with more of each."""

import os

LONG = bool(os.environ.get("GB300SERVE_TEST_LONG"))

"""`python -m klog.cli` is `klog`."""

import sys

from klog.cli import main

sys.exit(main())

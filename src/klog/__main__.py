"""`python -m klog` is `klog`."""

import sys

from klog.cli import main

sys.exit(main())

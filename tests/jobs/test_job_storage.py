"""The jobs take the options of a store as `klog.open` does: by their names, as plain texts."""

from __future__ import annotations

import pytest

import klog
from klog import jobs
from tests.connector.store.fake_s3 import fake_s3

IN_OPTIONS = {"from_delta", "import_files", "to_delta", "to_files"}
"""Jobs that take them among the options of their read or write."""
REQUIRED: dict[str, dict[str, object]] = {
    "export_log": {"topic": None, "to": "/no/such/directory"},
    "import_log": {"source": "/no/such/directory"},
}


@pytest.mark.parametrize("name", sorted({*jobs.__all__} - IN_OPTIONS))
def test_an_unknown_option_is_an_error_that_names_the_nearest(name: str) -> None:
    job = getattr(jobs, name)
    with pytest.raises(klog.OptionError, match=r"endpont.*endpoint") as caught:
        job.run(None, "s3://bucket/root", storage={"endpont": "s3cret"}, **REQUIRED.get(name, {}))
    assert "s3cret" not in str(caught.value)


def test_a_job_reads_a_store_with_them() -> None:
    with fake_s3() as fake:
        keywords = dict(fake.storage().values)
        log = klog.open("s3://bucket/root", **keywords)
        log.create_topic("orders")
        report = jobs.verify.run(None, "s3://bucket/root", storage=keywords)
    assert report.findings == ()
    assert report.partitions == 1

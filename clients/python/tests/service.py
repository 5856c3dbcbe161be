"""The running service, which the environment names. Without it the tests that need one are skipped."""

import os
import unittest
from typing import Any

from channel_transcripts import Client

URL = os.environ.get("CHANNEL_TRANSCRIPTS_URL", "")

needs_service = unittest.skipUnless(URL, "CHANNEL_TRANSCRIPTS_URL and CHANNEL_TRANSCRIPTS_KEY name no service.")


def client(**options: Any) -> Client:
    """A client of the Pro organization."""
    return Client(URL, os.environ["CHANNEL_TRANSCRIPTS_KEY"], **options)


def free_client() -> Client:
    """A client of an organization on the free plan."""
    return Client(URL, os.environ["CHANNEL_TRANSCRIPTS_FREE_KEY"])

"""What an organization keeps."""

from typing import Any, Dict, Iterator, Optional, cast

from ._http import Http, quoted
from ._types import LibraryVideo


class Library:
    """The transcripts of jobs and subscriptions with `keep`, until they are deleted. `Client.search` searches them."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def list(
        self,
        *,
        channel: Optional[str] = None,
        label: Optional[str] = None,
        language: Optional[str] = None,
        published_after: Optional[str] = None,
    ) -> Iterator[LibraryVideo]:
        """Yields the videos without their texts, newest first. `label` is a pair such as "user:42"."""
        query = library_query(channel, label, language, published_after)
        return cast(Iterator[LibraryVideo], self._http.items("/library/videos", "videos", query))

    def delete(self, video: str) -> None:
        """Deletes the texts of a video, by its ID or URL."""
        self._http.json("DELETE", f"/library/videos/{quoted(video)}")

    def delete_channel(self, channel: str) -> int:
        """Deletes the texts of all videos of a channel. Returns the number of videos."""
        return int(self._http.json("DELETE", "/library", query={"channel": channel})["videos"])


def library_query(
    channel: Optional[str], label: Optional[str], language: Optional[str], published_after: Optional[str]
) -> Dict[str, Any]:
    """Which part of the library is meant."""
    return {"channel": channel, "label": label, "language": language, "publishedAfter": published_after}

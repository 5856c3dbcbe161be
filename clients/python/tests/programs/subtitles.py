"""Writes the subtitles of a video to files. Usage: subtitles.py VIDEO_ID FOLDER"""

import sys
from pathlib import Path

from youtube_transcript_api import CouldNotRetrieveTranscript, YouTubeTranscriptApi
from youtube_transcript_api.formatters import SRTFormatter, WebVTTFormatter
from youtube_transcript_api.proxies import GenericProxyConfig

video_id, folder = sys.argv[1], Path(sys.argv[2])
api = YouTubeTranscriptApi(proxy_config=GenericProxyConfig(http_url="http://user:password@proxy.example:8080"))
try:
    track = api.list(video_id).find_manually_created_transcript(["en"])
except CouldNotRetrieveTranscript as error:
    sys.exit(str(error))
transcript = track.fetch()
for suffix, formatter in (("srt", SRTFormatter()), ("vtt", WebVTTFormatter())):
    target = folder / f"{video_id}.{track.language_code}.{suffix}"
    target.write_text(formatter.format_transcript(transcript), encoding="utf-8")
    print(target.name)

"""How much is said in some videos, and the words that are said most. Usage: summary.py VIDEO_ID..."""

import re
import sys
from collections import Counter

from youtube_transcript_api import NoTranscriptFound, TranscriptsDisabled, VideoUnavailable, YouTubeTranscriptApi

api = YouTubeTranscriptApi()
for video_id in sys.argv[1:]:
    try:
        transcript = api.fetch(video_id, languages=["de", "en"])
    except (TranscriptsDisabled, NoTranscriptFound, VideoUnavailable) as error:
        print(f"{video_id}: skipped, {type(error).__name__}")
        continue
    words = re.findall(r"\w{5,}", " ".join(snippet.text for snippet in transcript).lower())
    minutes = (transcript[-1].start + transcript[-1].duration) / 60
    top = ", ".join(word for word, _ in Counter(words).most_common(2))
    print(f"{video_id}: {transcript.language}, {len(transcript)} snippets, {minutes:.1f} min, {top}")

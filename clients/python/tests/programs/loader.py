"""Loads all manual transcripts of a video as records for an index. Usage: loader.py VIDEO_ID"""

import json
import sys

from youtube_transcript_api import NotTranslatable, YouTubeTranscriptApi

video_id = sys.argv[1]
transcripts = YouTubeTranscriptApi().list(video_id)
for transcript in transcripts:
    if transcript.is_generated:
        continue
    fetched = transcript.fetch()
    source = {"video": fetched.video_id, "language": fetched.language_code}
    print(json.dumps({"text": " ".join(one["text"] for one in fetched.to_raw_data())[:40], "source": source}))
original = transcripts.find_transcript(["ja", "en"])
try:
    print(original.translate("fr").fetch())
except NotTranslatable:
    print(f"no translation of {original.language}, translatable: {original.is_translatable}")

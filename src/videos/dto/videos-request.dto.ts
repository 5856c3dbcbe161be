import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { ArrayMaxSize, ArrayMinSize, IsArray, IsIn, IsString } from 'class-validator';
import { TextBodyDto, TextQueryDto } from '../../transcripts/dto/transcripts-query.dto.js';
import { VIDEOS_PER_CALL_MAX } from '../../domain/plan.js';
import { Optional } from '../../http/routes/validation.js';
import { ENTRY_FORMATS, type EntryFormat } from '../../transcripts/response/transcripts-response.js';

const VIDEOS_INVALID = `videos must be a list of 1 to ${VIDEOS_PER_CALL_MAX} IDs or URLs of videos.`;

/** The query parameters of the operation for one video. */
export class VideoQueryDto extends TextQueryDto {
  @ApiPropertyOptional({
    description:
      'The format of the response: `json` is the entry; `text` has one line per segment; `srt` (SubRip) and `vtt` (WebVTT) are ' +
      'subtitle files; `markdown` has a heading and paragraphs with links to the second. Of several languages, `text`, `srt` ' +
      'and `vtt` have the first. By default the format that `Accept` names, or `json`.',
    enum: ENTRY_FORMATS,
  })
  @Optional()
  @IsIn(ENTRY_FORMATS, { message: `format must be one of ${ENTRY_FORMATS.join(', ')}, given once.` })
  format?: EntryFormat;
}

/** The body of the operation for a list of videos. */
export class VideosBodyDto extends TextBodyDto {
  @ApiProperty({
    description:
      'IDs or URLs of videos. The response has one entry for each, in this order. A video that is listed twice has two ' +
      'entries and is charged once at most.',
    type: [String],
    minItems: 1,
    maxItems: VIDEOS_PER_CALL_MAX,
    example: ['hl-dinghy__', 'https://www.youtube.com/watch?v=hl-silent__'],
  })
  @IsArray({ message: VIDEOS_INVALID })
  @ArrayMinSize(1, { message: VIDEOS_INVALID })
  @ArrayMaxSize(VIDEOS_PER_CALL_MAX, { message: VIDEOS_INVALID })
  @IsString({ each: true, message: VIDEOS_INVALID })
  videos: string[];
}

/*
 * Small hand-written responses in the form of the YouTube Data API v3, by its reference.
 */

export const CHANNEL_ID = `UC${'c'.repeat(22)}`;
export const VIDEO_ID = 'aaaaaaaaaaa';

const pageInfo = { totalResults: 1, resultsPerPage: 50 };

export const channelList = (snippet: object = {}, statistics: object = { videoCount: '12' }) => ({
  kind: 'youtube#channelListResponse',
  etag: 'x',
  pageInfo,
  items: [
    {
      kind: 'youtube#channel',
      id: CHANNEL_ID,
      snippet: { title: 'A channel', description: 'x', customUrl: '@a.channel', ...snippet },
      statistics,
    },
  ],
});

const playlistItem = (videoId: string, title: string, privacyStatus: string, videoPublishedAt?: string) => ({
  kind: 'youtube#playlistItem',
  id: 'x',
  snippet: { publishedAt: '2026-01-01T00:00:00Z', title, position: 0 },
  contentDetails: { videoId, ...(videoPublishedAt !== undefined && { videoPublishedAt }) },
  status: { privacyStatus },
});

export const playlistItemList = () => ({
  kind: 'youtube#playlistItemListResponse',
  etag: 'x',
  nextPageToken: 'next',
  pageInfo,
  items: [
    playlistItem(VIDEO_ID, 'A video', 'public', '2026-05-21T11:22:05Z'),
    playlistItem('bbbbbbbbb-_', 'Private video', 'private'),
    playlistItem('ccccccccccc', 'Deleted video', 'privacyStatusUnspecified'),
  ],
});

export const videoList = (
  fields: { snippet?: object; contentDetails?: object; liveStreamingDetails?: object } = {},
) => ({
  kind: 'youtube#videoListResponse',
  etag: 'x',
  pageInfo,
  items: [
    {
      kind: 'youtube#video',
      id: VIDEO_ID,
      snippet: {
        publishedAt: '2026-05-21T11:22:05Z',
        title: 'A video',
        thumbnails: {
          default: { url: 'https://i.ytimg.com/vi/x/default.jpg', width: 120, height: 90 },
          maxres: { url: 'https://i.ytimg.com/vi/x/maxres.jpg', width: 1280, height: 720 },
          high: { url: 'https://i.ytimg.com/vi/x/hqdefault.jpg', width: 480, height: 360 },
        },
        liveBroadcastContent: 'none',
        ...fields.snippet,
      },
      contentDetails: { duration: 'PT12M34S', caption: 'true', ...fields.contentDetails },
      statistics: { viewCount: '1234', likeCount: '1' },
      ...(fields.liveStreamingDetails && { liveStreamingDetails: fields.liveStreamingDetails }),
    },
  ],
});

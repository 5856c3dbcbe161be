import { Module } from '@nestjs/common';
import { UpstreamTraffic } from '../upstream-traffic.js';
import { VideoPlatform } from '../video-platform.js';
import { UpstreamEvents } from './upstream-events.js';
import { YoutubePlatform } from './youtube-platform.js';

/** YouTube as the platform behind the port. `Environment` has to be provided globally. */
@Module({
  providers: [
    UpstreamEvents,
    YoutubePlatform,
    { provide: VideoPlatform, useExisting: YoutubePlatform },
    { provide: UpstreamTraffic, useExisting: UpstreamEvents },
  ],
  exports: [VideoPlatform, UpstreamTraffic],
})
export class YoutubeModule {}

import { HARBOUR_LIGHT_OCTOBER } from './harbour-light-october.js';
import { HARBOUR_LIGHT_OLDER } from './harbour-light-older.js';
import { HARBOUR_LIGHT_SUMMER } from './harbour-light-summer.js';
import { type Channel, channelId } from './model.js';

/** The main channel: 17 of its newest 25 uploads have a transcript; the others cover every reason for having none. */
export const HARBOUR_LIGHT: Channel = {
  id: channelId('harbourlight'),
  name: 'Harbour Light Workshop',
  handle: '@harbourlight',
  customNames: ['HarbourLightWorkshop'],
  userNames: ['harbourlightboats'],
  description: 'Wooden boats, old tools and the lighthouse next door. A new film when the varnish is dry.',
  state: 'ok',
  uploadsPlaylist: 'present',
  uploads: () => [...HARBOUR_LIGHT_OCTOBER, ...HARBOUR_LIGHT_SUMMER, ...HARBOUR_LIGHT_OLDER],
};

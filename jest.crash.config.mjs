export { crash as default } from './jest.config.mjs';

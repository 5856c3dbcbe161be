export { recordings as default } from '../../jest.config.mjs';

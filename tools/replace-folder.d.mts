export function replaceFolder(
  folder: string,
  build: (folder: string) => void | Promise<void>,
  keeps?: (file: string) => boolean,
): Promise<void>;

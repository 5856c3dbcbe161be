import type { LibraryVideosDto, SearchResultsDto } from '../../src/library/dto/library-response.dto.js';
import type { ServiceResponse, TestService } from '../harness/service.js';

/** Searches the library of an organization. @param query further parameters */
export async function search(service: TestService, key: string, q: string, query = ''): Promise<SearchResultsDto> {
  const response = await service.get(`/library/search?q=${encodeURIComponent(q)}${query}`, key);
  if (response.status !== 200) throw new Error(`${response.status}: ${response.text}`);
  return response.body as SearchResultsDto;
}

/** The words that a search has found, each in its passage. */
export function matchedTexts({ results }: SearchResultsDto): string[][] {
  return results.map(({ text, matches }) => matches.map(({ from, to }) => text.slice(from, to)));
}

export async function libraryVideos(service: TestService, key: string, query = ''): Promise<LibraryVideosDto> {
  const response = await service.get(`/library/videos${query}`, key);
  if (response.status !== 200) throw new Error(`${response.status}: ${response.text}`);
  return response.body as LibraryVideosDto;
}

export function deleteFromLibrary(service: TestService, key: string, path: string): Promise<ServiceResponse> {
  return service.request('DELETE', `/library${path}`, { Authorization: `Bearer ${key}` });
}

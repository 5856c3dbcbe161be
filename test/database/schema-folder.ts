import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SCHEMA } from '../../src/database/migrate.js';

const FOLDERS = ['migrations', 'functions'];

/** A folder with the `migrations` and `functions` of a test. */
export class SchemaFolder {
  private constructor(readonly path: string) {}

  /** @param files their texts by name, such as `migrations/0001-first.sql` */
  static async create(files: Readonly<Record<string, string>> = {}): Promise<SchemaFolder> {
    const folder = new SchemaFolder(await mkdtemp(join(tmpdir(), 'schema-')));
    await Promise.all(FOLDERS.map((name) => mkdir(join(folder.path, name))));
    for (const [name, text] of Object.entries(files)) await folder.write(name, text);
    return folder;
  }

  /** A copy of the schema of the service. */
  static async ofTheService(): Promise<SchemaFolder> {
    const folder = await SchemaFolder.create();
    for (const name of FOLDERS) await cp(join(SCHEMA, name), join(folder.path, name), { recursive: true });
    return folder;
  }

  /** The tables of the first version, without functions. */
  static async ofTheFirstVersion(): Promise<SchemaFolder> {
    const folder = await SchemaFolder.create();
    const [first = ''] = (await readdir(join(SCHEMA, 'migrations'))).sort();
    await cp(join(SCHEMA, 'migrations', first), join(folder.path, 'migrations', first));
    return folder;
  }

  /** The tables before a migration, without functions. @param subject its name without the number */
  static async ofTablesBefore(subject: string): Promise<SchemaFolder> {
    const folder = await SchemaFolder.create();
    const names = (await readdir(join(SCHEMA, 'migrations'))).sort();
    for (const name of names.slice(
      0,
      names.findIndex((one) => one.endsWith(`-${subject}.sql`)),
    ))
      await cp(join(SCHEMA, 'migrations', name), join(folder.path, 'migrations', name));
    return folder;
  }

  /** Adds a migration after the others. */
  async add(text: string): Promise<void> {
    const migrations = await readdir(join(this.path, 'migrations'));
    await this.write(`migrations/${String(migrations.length + 1).padStart(4, '0')}-added.sql`, text);
  }

  async write(name: string, text: string): Promise<void> {
    await writeFile(join(this.path, name), text);
  }

  async change(name: string, change: (text: string) => string): Promise<void> {
    await this.write(name, change(await readFile(join(this.path, name), 'utf8')));
  }

  async remove(name: string): Promise<void> {
    await rm(join(this.path, name));
  }

  async delete(): Promise<void> {
    await rm(this.path, { recursive: true });
  }
}

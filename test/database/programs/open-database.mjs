// Opens the database of the environment, from the compiled files in the directory given, and asks it something.
const { Environment } = await import(`${process.argv[2]}/config/environment.js`);
const { openDatabase } = await import(`${process.argv[2]}/database/data-source.js`);
const environment = Object.assign(new Environment(), { DATABASE_URL: process.argv[3] });
const { dataSource, close } = await openDatabase(environment, { as: 'service', entities: [], migrations: [] });
process.stdout.write(JSON.stringify(await dataSource.query('SELECT 1 AS alive')));
await close();

// Opens the database of the environment with the compiled files in the given directory, and runs a query.
const { Environment } = await import(`${process.argv[2]}/config/environment.js`);
const { openDatabase } = await import(`${process.argv[2]}/database/data-source.js`);
const environment = Object.assign(new Environment(), { DATABASE_URL: process.argv[3] });
const { dataSource, close } = await openDatabase(environment, { as: 'service', entities: [], migrations: [] });
process.stdout.write(JSON.stringify(await dataSource.query('SELECT 1 AS alive')));
await close();

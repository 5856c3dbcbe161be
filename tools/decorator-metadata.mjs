// Injected into every module of the bundle. Without a name that is imported, no module gets an object of its own for it.
import 'reflect-metadata';

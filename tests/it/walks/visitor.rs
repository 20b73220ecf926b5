//! A visitor understands the service, searches and looks at rows.

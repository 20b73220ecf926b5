//! A `PostgreSQL` server with the table, asked over its protocol (version 3, simple queries).
//!
//! Invariant: texts are compared by their bytes and the time zone is UTC, as in the sandbox.

use std::io::{BufReader, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;
use store::testing::Postgres as Server;
use types::{Contract, FieldType};

use super::Said;
use super::compare::Cell;

/// Settings of the session.
const SETTINGS: &str = "SET timezone = 'UTC'; SET intervalstyle = 'postgres'; SET statement_timeout = '20s'";

/// A connection to a database of its own.
pub(super) struct Postgres {
    stream: BufReader<TcpStream>,
}

/// The identifiers of the types, from `pg_type`, and for those of arrays the type of their items.
fn item_of(array: u32) -> Option<u32> {
    Some(match array {
        1000 => 16,
        1005 => 21,
        1007 => 23,
        1009 => 25,
        1015 => 1043,
        1016 => 20,
        1021 => 700,
        1022 => 701,
        1115 => 1114,
        1182 => 1082,
        1185 => 1184,
        1187 => 1186,
        1231 => 1700,
        _ => return None,
    })
}

impl Postgres {
    /// Makes the database `name` with the records of `versions` as its table. `None` where there is no server.
    pub(super) fn start(name: &str, contract: &Contract, versions: &[Vec<Value>]) -> Option<Self> {
        let server = Server::shared()?;
        let mut administrator = Self::connect(server, "postgres");
        administrator.done(&format!(
            "CREATE DATABASE {name} TEMPLATE template0 LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C.UTF-8'"
        ));
        let mut database = Self::connect(server, name);
        database.done(SETTINGS);
        database.load(contract, versions);
        Some(database)
    }

    fn connect(server: &Server, database: &str) -> Self {
        let stream = TcpStream::connect(server.address()).unwrap();
        let mut stream = BufReader::new(stream);
        let mut start = 196_608_u32.to_be_bytes().to_vec();
        start.extend_from_slice(format!("user\0sluice\0database\0{database}\0\0").as_bytes());
        let length = u32::try_from(start.len() + 4).unwrap();
        stream.get_mut().write_all(&length.to_be_bytes()).unwrap();
        stream.get_mut().write_all(&start).unwrap();
        let mut connected = Self { stream };
        if let Said::Error(error) = connected.answer() {
            panic!("{error}");
        }
        connected
    }

    fn load(&mut self, contract: &Contract, versions: &[Vec<Value>]) {
        let fields: Vec<_> = contract.fields().iter().collect();
        let columns = fields.iter().map(|field| {
            let kind = match field.kind {
                FieldType::Integer => "bigint".to_owned(),
                FieldType::Number => "double precision".to_owned(),
                FieldType::Boolean => "boolean".to_owned(),
                FieldType::Timestamp => "timestamptz".to_owned(),
                FieldType::Date => "date".to_owned(),
                FieldType::Decimal(scale) => format!("numeric(28, {scale})"),
                FieldType::String | FieldType::Json => "text".to_owned(),
            };
            format!("{} {kind}", field.name)
        });
        let columns: Vec<String> = columns.collect();
        self.done(&format!("CREATE TABLE records ({})", columns.join(", ")));
        for record in versions.iter().flatten() {
            let values = fields.iter().map(|field| match record.get(&*field.name) {
                None | Some(Value::Null) => "NULL".to_owned(),
                Some(Value::String(text)) if field.kind != FieldType::Json => format!("'{}'", text.replace('\'', "''")),
                Some(value) => format!("'{}'", value.to_string().replace('\'', "''")),
            });
            let values: Vec<String> = values.collect();
            self.done(&format!("INSERT INTO records VALUES ({})", values.join(", ")));
        }
    }

    fn done(&mut self, sql: &str) {
        if let Said::Error(error) = self.ask(sql) {
            panic!("{sql}: {error}");
        }
    }

    /// Runs a statement.
    pub(super) fn ask(&mut self, sql: &str) -> Said {
        let mut message = vec![b'Q'];
        message.extend_from_slice(&u32::try_from(sql.len() + 5).unwrap().to_be_bytes());
        message.extend_from_slice(sql.as_bytes());
        message.push(0);
        self.stream.get_mut().write_all(&message).unwrap();
        self.answer()
    }

    /// Reads until the server is ready for the next statement.
    fn answer(&mut self) -> Said {
        let (mut kinds, mut rows, mut error) = (Vec::new(), Vec::new(), None);
        loop {
            let mut head = [0; 5];
            self.stream.read_exact(&mut head).unwrap();
            let length = u32::from_be_bytes(head[1..].try_into().unwrap());
            let mut body = vec![0; usize::try_from(length).unwrap() - 4];
            self.stream.read_exact(&mut body).unwrap();
            let mut body = Body(&body);
            match head[0] {
                b'T' => kinds = (0..body.short()).map(|_| body.column()).collect(),
                b'D' => {
                    let count = body.short();
                    let cells = kinds.iter().take(usize::from(count));
                    rows.push(
                        cells
                            .map(|kind| body.value().map_or(Cell::Null, |text| cell(text, *kind)))
                            .collect(),
                    );
                }
                b'E' => error = Some(body.message()),
                b'Z' => return error.map_or(Said::Rows(rows), Said::Error),
                _ => {}
            }
        }
    }
}

/// The rest of a message.
struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    fn short(&mut self) -> u16 {
        u16::from_be_bytes(self.take(2).try_into().unwrap())
    }

    fn long(&mut self) -> u32 {
        u32::from_be_bytes(self.take(4).try_into().unwrap())
    }

    fn text(&mut self) -> &'a str {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap();
        let text = std::str::from_utf8(self.take(end)).unwrap();
        self.take(1);
        text
    }

    /// The type of a column, of its description.
    fn column(&mut self) -> u32 {
        self.text();
        self.take(6);
        let kind = self.long();
        self.take(8);
        kind
    }

    fn value(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.long()).unwrap();
        // The length −1 is null.
        (length != usize::try_from(u32::MAX).unwrap()).then(|| std::str::from_utf8(self.take(length)).unwrap())
    }

    /// The words of an error.
    fn message(&mut self) -> String {
        while self.0.len() > 1 {
            let field = self.take(1)[0];
            let text = self.text();
            if field == b'M' {
                return text.to_owned();
            }
        }
        String::new()
    }
}

/// A value of a type in the text form of the server.
fn cell(text: &str, kind: u32) -> Cell {
    if let Some(item) = item_of(kind) {
        return items(&mut text.chars().peekable(), item);
    }
    match kind {
        16 => Cell::Boolean(text == "t"),
        20 | 21 | 23 | 1700 => Cell::exact(text),
        700 | 701 => Cell::number(text),
        1082 | 1114 | 1184 => Cell::time(text),
        1186 => Cell::interval(text),
        _ => Cell::Text(text.to_owned()),
    }
}

/// An array, such as `{1,NULL,"a b"}`. Its first bracket is next.
fn items(text: &mut std::iter::Peekable<std::str::Chars<'_>>, item: u32) -> Cell {
    let mut cells = Vec::new();
    text.next();
    loop {
        match text.peek() {
            Some('{') => cells.push(items(text, item)),
            Some('}') | None => {
                text.next();
                return Cell::List(cells);
            }
            Some(',') => {
                text.next();
            }
            Some('"') => {
                text.next();
                let mut word = String::new();
                while let Some(next) = text.next().filter(|next| *next != '"') {
                    word.push(if next == '\\' { text.next().unwrap() } else { next });
                }
                cells.push(cell(&word, item));
            }
            Some(_) => {
                let mut word = String::new();
                while let Some(next) = text.next_if(|next| !matches!(next, ',' | '}')) {
                    word.push(next);
                }
                cells.push(if word == "NULL" { Cell::Null } else { cell(&word, item) });
            }
        }
    }
}

//! A server that takes mail (RFC 5321) and keeps it, on the loopback address.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a server of tests")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Answer to the end of a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// 250: the letter is kept.
    Take,
    /// 550: the letter is refused for good.
    Refuse,
    /// 451: the letter is refused for now.
    Later,
    /// The letter is kept and the connection closed without an answer.
    LoseReply,
}

/// A letter that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Recipients of the envelope.
    pub recipients: Vec<String>,
    /// The message with its headers.
    pub text: String,
}

/// A mail server that keeps what it takes; ends with its last handle.
#[derive(Debug)]
pub struct Sink {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    accepting: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    answer: Answer,
    letters: Vec<Taken>,
}

impl Sink {
    /// Starts a server on a free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Mutex::new(Shared {
            answer: Answer::Take,
            letters: Vec::new(),
        }));
        let serving = Arc::clone(&shared);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&serving)));
            }
        });
        Self {
            address,
            shared,
            accepting,
        }
    }

    /// Returns the address of the server.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the answer to the letters that come from now on.
    pub fn answer(&self, answer: Answer) {
        self.shared.lock().unwrap().answer = answer;
    }

    /// Returns the letters that were taken, oldest first.
    pub fn letters(&self) -> Vec<Taken> {
        self.shared.lock().unwrap().letters.clone()
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(stream: TcpStream, shared: Arc<Mutex<Shared>>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    say(&mut stream, "220 sink ESMTP").await?;
    let mut recipients = Vec::new();
    loop {
        let line = line(&mut stream).await?;
        let command = line.to_ascii_uppercase();
        if command.starts_with("RCPT TO:") {
            let address = line.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
            recipients.push(address.expect("an address in brackets").0.to_owned());
            say(&mut stream, "250 ok").await?;
        } else if command == "DATA" {
            say(&mut stream, "354 go on").await?;
            let text = text(&mut stream).await?;
            let answer = shared.lock().unwrap().answer;
            if matches!(answer, Answer::Take | Answer::LoseReply) {
                let recipients = std::mem::take(&mut recipients);
                shared.lock().unwrap().letters.push(Taken { recipients, text });
            }
            match answer {
                Answer::Take => say(&mut stream, "250 taken").await?,
                Answer::Refuse => say(&mut stream, "550 no such mailbox").await?,
                Answer::Later => say(&mut stream, "451 try again later").await?,
                Answer::LoseReply => return None,
            }
        } else if command == "QUIT" {
            say(&mut stream, "221 bye").await?;
            return None;
        } else if command.starts_with("EHLO") {
            say(&mut stream, "250-sink\r\n250 8BITMIME").await?;
        } else {
            say(&mut stream, "250 ok").await?;
        }
    }
}

/// Reads the lines of a letter up to the lone full stop; doubled ones at the beginning of a line lose one.
async fn text(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut text = String::new();
    loop {
        let line = line(stream).await?;
        if line == "." {
            return Some(text);
        }
        text.push_str(line.strip_prefix('.').unwrap_or(&line));
        text.push_str("\r\n");
    }
}

async fn line(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    let read = stream.read_line(&mut line).await.ok()?;
    (read > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned())
}

async fn say(stream: &mut BufReader<TcpStream>, line: &str) -> Option<()> {
    stream.write_all(format!("{line}\r\n").as_bytes()).await.ok()
}

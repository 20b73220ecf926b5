//! Letters by SMTP (RFC 5321), with TLS from the start or by STARTTLS (RFC 8314, RFC 3207).

use std::time::Duration;

use async_trait::async_trait;
use lettre::message::Mailbox;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Tokio1Executor};

use crate::folder::sender;
use crate::{Error, Letter, Mailer};

/// Protection of a connection to a mail server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// None: for a server on this machine.
    None,
    /// TLS that starts after the greeting (RFC 3207); a server without it is an error.
    StartTls,
    /// TLS from the first byte.
    Tls,
}

/// Address, protection and credentials of a mail server.
#[derive(Clone, Debug)]
pub struct SmtpOptions {
    /// Name or IP address of the mail server. With TLS its certificate must have this name.
    pub host: String,
    /// TCP port of the mail server: 25, 465 or 587 by custom.
    pub port: u16,
    /// Protection of the connection.
    pub security: Security,
    /// Name and password; none for a server that asks for none.
    pub credentials: Option<(String, String)>,
    /// Sender, such as `Sluice <sluice@example.org>`.
    pub from: String,
    /// Longest time of one exchange.
    pub timeout: Duration,
}

/// A client of a mail server.
#[derive(Clone, Debug)]
pub struct Smtp {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl Smtp {
    /// Creates a client, which connects when the first letter is sent.
    ///
    /// # Errors
    /// [`Error::Options`] if the sender is no address or TLS cannot be set up.
    pub fn new(options: &SmtpOptions) -> Result<Self, Error> {
        let tls = || {
            let parameters = TlsParameters::new(options.host.clone());
            parameters.map_err(|error| Error::Options(error.to_string()))
        };
        let tls = match options.security {
            Security::None => Tls::None,
            // Required and not opportunistic: an attacker who removes the offer of TLS must not get the password.
            Security::StartTls => Tls::Required(tls()?),
            Security::Tls => Tls::Wrapper(tls()?),
        };
        // The builder is called dangerous because it begins without TLS, which is set here.
        let mut transport = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&options.host)
            .port(options.port)
            .tls(tls)
            .timeout(Some(options.timeout));
        if let Some((name, password)) = &options.credentials {
            transport = transport.credentials(Credentials::new(name.clone(), password.clone()));
        }
        Ok(Self {
            transport: transport.build(),
            from: sender(&options.from)?,
        })
    }
}

#[async_trait]
impl Mailer for Smtp {
    async fn send(&self, letter: &Letter) -> Result<(), Error> {
        let message = letter.message(&self.from)?;
        match self.transport.send(message).await {
            Ok(_taken) => Ok(()),
            // Only replies of the class 5yz are final (RFC 5321 section 4.2.1). A lost reply is not: the server may have
            // taken the letter, and sending it again is harmless.
            Err(error) if error.is_permanent() => Err(Error::Refused(error.to_string())),
            Err(error) => Err(Error::Unavailable(error.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use types::{Classify as _, Retry};

    use super::*;
    use crate::conformance::{self, Arrived, Fixture};
    use crate::testing::{Answer, Sink};

    struct Server {
        sink: Sink,
        mailer: Smtp,
    }

    impl Server {
        async fn start() -> Self {
            let sink = Sink::start().await;
            let options = SmtpOptions {
                host: sink.address().ip().to_string(),
                port: sink.address().port(),
                security: Security::None,
                credentials: None,
                from: "Sluice <sluice@example.org>".to_owned(),
                timeout: Duration::from_secs(10),
            };
            let mailer = Smtp::new(&options).unwrap();
            Self { sink, mailer }
        }
    }

    #[async_trait]
    impl Fixture for Server {
        fn mailer(&self) -> &dyn Mailer {
            &self.mailer
        }

        async fn arrived(&self) -> Vec<Arrived> {
            let arrived = self.sink.letters().into_iter().map(|letter| Arrived {
                recipients: Some(letter.recipients),
                text: letter.text,
            });
            arrived.collect()
        }
    }

    #[tokio::test]
    async fn a_mail_server_is_a_mailer() {
        conformance::all(Server::start).await;
    }

    #[tokio::test]
    async fn a_refusal_for_good_is_not_tried_again_and_one_for_now_is() {
        let server = Server::start().await;
        let letter = conformance::letter("one");
        server.sink.answer(Answer::Refuse);
        let refused = server.mailer.send(&letter).await.unwrap_err();
        assert_eq!(refused.retry(), Retry::Never, "{refused:?}");
        server.sink.answer(Answer::Later);
        let later = server.mailer.send(&letter).await.unwrap_err();
        assert_eq!(later.retry(), Retry::Backoff, "{later:?}");
        server.sink.answer(Answer::LoseReply);
        let lost = server.mailer.send(&letter).await.unwrap_err();
        assert_eq!(lost.retry(), Retry::Backoff, "{lost:?}");
        server.sink.answer(Answer::Take);
        server.mailer.send(&letter).await.unwrap();
        let ids: Vec<_> = server
            .arrived()
            .await
            .iter()
            .map(|arrived| arrived.header("Message-ID"))
            .collect();
        assert_eq!(
            ids,
            vec![Some("<one@example.org>".to_owned()); 2],
            "the answer was lost, not the letter"
        );
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_can_be_tried_again() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let options = SmtpOptions {
            host: address.ip().to_string(),
            port: address.port(),
            security: Security::None,
            credentials: None,
            from: "sluice@example.org".to_owned(),
            timeout: Duration::from_secs(5),
        };
        let error = Smtp::new(&options).unwrap().send(&conformance::letter("one")).await;
        assert_eq!(error.unwrap_err().retry(), Retry::Backoff);
    }
}

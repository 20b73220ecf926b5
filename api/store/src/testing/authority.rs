//! A certificate authority for tests.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Options of `openssl` for a new elliptic-curve key.
const KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";

/// A certificate authority with its files in an existing folder. `openssl` makes every certificate for this run.
#[derive(Debug)]
pub struct Authority(PathBuf);

impl Authority {
    /// Creates an authority with this name. Its files are in `folder`, which no other authority may use.
    pub fn new(folder: impl Into<PathBuf>, name: &str) -> Self {
        let authority = Self(folder.into());
        authority.openssl(&format!(
            "req -x509 -days 2 -subj /CN={name} {KEY} -keyout ca.key -out ca.crt"
        ));
        authority
    }

    /// Returns the file with the authority's certificate (PEM).
    pub fn roots(&self) -> PathBuf {
        self.0.join("ca.crt")
    }

    /// Returns a certificate for `localhost`, and for no address, with its key (both PEM).
    pub fn certificate(&self) -> (String, String) {
        fs::write(self.0.join("names"), "subjectAltName = DNS:localhost\n").unwrap();
        self.openssl(&format!(
            "req -subj /CN=localhost {KEY} -keyout server.key -out server.csr"
        ));
        self.openssl(
            "x509 -req -in server.csr -days 2 -extfile names -CA ca.crt -CAkey ca.key -CAcreateserial -out server.crt",
        );
        let read = |name: &str| fs::read_to_string(self.0.join(name)).unwrap();
        (read("server.crt"), read("server.key"))
    }

    fn openssl(&self, arguments: &str) {
        let mut command = Command::new("openssl");
        command.current_dir(&self.0).args(arguments.split(' '));
        let ran = command.output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }
}

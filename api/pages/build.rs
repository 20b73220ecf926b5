//! Computes the hash of the assets, which is a part of their addresses.

use std::{env, error, fs, path::Path};

/// Files that browsers load, in the order in which they are hashed.
const FILES: [&str; 7] = [
    "atkinson-next-latin-ext.woff2",
    "atkinson-next-latin.woff2",
    "mark.svg",
    "publish.js",
    "sluice.css",
    "sluice.js",
    "wallet.js",
];

fn main() -> Result<(), Box<dyn error::Error>> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("assets");
    println!("cargo::rerun-if-changed=assets");
    let mut hash = Fnv::START;
    for name in FILES {
        let bytes = fs::read(folder.join(name))?;
        // The order is fixed: read from the folder, it would differ between machines, and so would the
        // addresses of replicas that serve one page.
        hash = hash.with(name.as_bytes()).with(&bytes);
    }
    println!("cargo::rustc-env=ASSETS_HASH={:016x}", hash.0);
    Ok(())
}

/// FNV-1a, 64 bits. Nobody chooses the bytes, so a hash that can be forged is enough.
struct Fnv(u64);

impl Fnv {
    const START: Self = Self(0xcbf2_9ce4_8422_2325);

    fn with(self, bytes: &[u8]) -> Self {
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        Self(bytes.iter().fold(self.0, step))
    }
}

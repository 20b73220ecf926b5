//! Licences that an item may have.
//!
//! Invariant: the list is that of the interface, with a link to each text. Anything else is refused.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

macro_rules! licenses {
    ($($variant:ident = $id:literal, $name:literal, $url:literal;)*) => {
        /// Licence by its id: of SPDX (<https://spdx.org/licenses/>), or the platform's own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
        pub enum License {
            $(#[doc = $name] #[serde(rename = $id)] $variant,)*
        }

        impl License {
            /// All licences, in the order of the interface.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the id.
            pub const fn id(self) -> &'static str {
                match self {
                    $(Self::$variant => $id,)*
                }
            }

            /// Returns the name in English.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Returns the address of the text. A path without host is one of this service.
            pub const fn url(self) -> &'static str {
                match self {
                    $(Self::$variant => $url,)*
                }
            }
        }
    };
}

licenses! {
    PlatformStandard = "platform-standard", "Platform standard: use and keep, no resale or republication",
        "/licenses/platform-standard";
    Cc0 = "CC0-1.0", "Creative Commons Zero v1.0 Universal", "https://creativecommons.org/publicdomain/zero/1.0/";
    CcBy = "CC-BY-4.0", "Creative Commons Attribution 4.0 International",
        "https://creativecommons.org/licenses/by/4.0/";
    CcBySa = "CC-BY-SA-4.0", "Creative Commons Attribution Share Alike 4.0 International",
        "https://creativecommons.org/licenses/by-sa/4.0/";
    Odbl = "ODbL-1.0", "Open Data Commons Open Database License v1.0",
        "https://opendatacommons.org/licenses/odbl/1-0/";
    Pddl = "PDDL-1.0", "Open Data Commons Public Domain Dedication and License v1.0",
        "https://opendatacommons.org/licenses/pddl/1-0/";
    CdlaPermissive = "CDLA-Permissive-2.0", "Community Data License Agreement Permissive 2.0",
        "https://cdla.dev/permissive-2-0/";
}

impl JsonSchema for License {
    fn schema_name() -> Cow<'static, str> {
        "License".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // Written by hand, since the derived schema would have a description for each variant.
        let ids: Vec<&str> = Self::ALL.iter().map(|license| license.id()).collect();
        json_schema!({"type": "string", "enum": ids})
    }
}

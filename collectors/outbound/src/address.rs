//! The addresses that are public.
//!
//! Invariant: an address in a block that the IANA registries of special-purpose addresses (RFC 6890) list as not globally
//! reachable is not public, and neither is an IPv6 address that stands for such an IPv4 address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Blocks of IPv4 that are not public: first address and length of the prefix.
const RESERVED_V4: [(Ipv4Addr, u32); 17] = [
    (Ipv4Addr::UNSPECIFIED, 8),            // this network; `0.0.0.0` connects to this machine
    (Ipv4Addr::new(10, 0, 0, 0), 8),       // private (RFC 1918)
    (Ipv4Addr::new(100, 64, 0, 0), 10),    // shared by carriers (RFC 6598), metadata of a cloud
    (Ipv4Addr::new(127, 0, 0, 0), 8),      // this machine
    (Ipv4Addr::new(168, 63, 129, 16), 32), // public by its number, and the host agent inside Azure
    (Ipv4Addr::new(169, 254, 0, 0), 16),   // link-local, metadata of clouds
    (Ipv4Addr::new(172, 16, 0, 0), 12),    // private
    (Ipv4Addr::new(192, 0, 0, 0), 24),     // protocol assignments
    (Ipv4Addr::new(192, 0, 2, 0), 24),     // documentation
    (Ipv4Addr::new(192, 88, 99, 0), 24),   // 6to4 relays (RFC 7526)
    (Ipv4Addr::new(192, 168, 0, 0), 16),   // private
    (Ipv4Addr::new(198, 18, 0, 0), 15),    // benchmarks
    (Ipv4Addr::new(198, 51, 100, 0), 24),  // documentation
    (Ipv4Addr::new(203, 0, 113, 0), 24),   // documentation
    (Ipv4Addr::new(224, 0, 0, 0), 4),      // multicast
    (Ipv4Addr::new(240, 0, 0, 0), 4),      // reserved
    (Ipv4Addr::BROADCAST, 32),             // broadcast
];

/// Blocks inside the global unicast space of IPv6 (`2000::/3`) that are not public.
const RESERVED_V6: [(Ipv6Addr, u32); 4] = [
    // Protocol assignments, Teredo among them, whose addresses contain the IPv4 address of a server.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation
    // 6to4: the next 32 bits are an IPv4 address. Nothing public is left behind it, so no part is excepted.
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // documentation (RFC 9637)
];

/// The global unicast space of IPv6 (RFC 4291). Loopback, mapped, compatible, local and multicast addresses are outside.
const GLOBAL_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// The well-known prefix of NAT64 (RFC 6052), whose last 32 bits are an IPv4 address.
const NAT64_PREFIX: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// Returns true if an address is one of the public internet.
///
/// IPv6 is public inside `2000::/3` only, with exceptions, and where it stands for a public IPv4 address by the
/// well-known prefix of NAT64. The local prefix of NAT64 (`64:ff9b:1::/48`, RFC 8215) is not public, because a network
/// decides for itself at which bits the IPv4 address is.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        // In a network with IPv6 only, DNS64 gives names of IPv4 servers such addresses.
        IpAddr::V6(address) if within_v6(address, NAT64_PREFIX) => {
            let [.., a, b, c, d] = address.octets();
            is_public_v4(Ipv4Addr::new(a, b, c, d))
        }
        IpAddr::V6(address) => {
            within_v6(address, GLOBAL_V6) && !RESERVED_V6.iter().any(|block| within_v6(address, *block))
        }
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let within = |(first, length): &(Ipv4Addr, u32)| (address.to_bits() ^ first.to_bits()) >> (32 - length) == 0;
    !RESERVED_V4.iter().any(within)
}

fn within_v6(address: Ipv6Addr, (first, length): (Ipv6Addr, u32)) -> bool {
    (address.to_bits() ^ first.to_bits()) >> (128 - length) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first and the last address of each block, and the public neighbours of each.
    const EDGES: [(&str, &str, &[&str]); 29] = [
        ("0.0.0.0", "0.255.255.255", &["1.0.0.0"]),
        ("10.0.0.0", "10.255.255.255", &["9.255.255.255", "11.0.0.0"]),
        ("100.64.0.0", "100.127.255.255", &["100.63.255.255", "100.128.0.0"]),
        ("127.0.0.0", "127.255.255.255", &["126.255.255.255", "128.0.0.0"]),
        ("168.63.129.16", "168.63.129.16", &["168.63.129.15", "168.63.129.17"]),
        ("169.254.0.0", "169.254.255.255", &["169.253.255.255", "169.255.0.0"]),
        ("172.16.0.0", "172.31.255.255", &["172.15.255.255", "172.32.0.0"]),
        ("192.0.0.0", "192.0.0.255", &["191.255.255.255", "192.0.1.0"]),
        ("192.0.2.0", "192.0.2.255", &["192.0.1.255", "192.0.3.0"]),
        ("192.88.99.0", "192.88.99.255", &["192.88.98.255", "192.88.100.0"]),
        ("192.168.0.0", "192.168.255.255", &["192.167.255.255", "192.169.0.0"]),
        ("198.18.0.0", "198.19.255.255", &["198.17.255.255", "198.20.0.0"]),
        ("198.51.100.0", "198.51.100.255", &["198.51.99.255", "198.51.101.0"]),
        ("203.0.113.0", "203.0.113.255", &["203.0.112.255", "203.0.114.0"]),
        ("224.0.0.0", "255.255.255.255", &["223.255.255.255"]),
        ("::", "::ffff:ffff:ffff:ffff", &[]),
        ("::ffff:0.0.0.0", "::ffff:255.255.255.255", &[]),
        (
            "64:ff9b::10.0.0.0",
            "64:ff9b::10.255.255.255",
            &["64:ff9b::9.255.255.255", "64:ff9b::8.8.8.8"],
        ),
        ("64:ff9b::127.0.0.1", "64:ff9b::169.254.169.254", &[]),
        ("64:ff9b:0:0:0:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", &[]),
        ("100::", "100::ffff:ffff:ffff:ffff", &[]),
        (
            "2001::",
            "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff",
            &["2001:200::", "2001:4860:4860::8888"],
        ),
        (
            "2001:db8::",
            "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
            &["2001:db7:ffff::", "2001:db9::"],
        ),
        (
            "2002::",
            "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            &["2003::", "2001:ffff::"],
        ),
        (
            "3fff::",
            "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff",
            &["3ffe:ffff::", "3fff:1000::"],
        ),
        ("4000::", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", &["3fff:ffff::"]),
        ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", &[]),
        ("fe80::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", &[]),
        (
            "ff00::",
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            &["2606:4700:4700::1111"],
        ),
    ];

    #[test]
    fn each_block_is_refused_to_its_edges_and_no_further() {
        for (first, last, public) in EDGES {
            for address in [first, last] {
                assert!(!is_public(address.parse().unwrap()), "{address}");
            }
            for address in public {
                assert!(is_public(address.parse().unwrap()), "{address}");
            }
        }
    }

    #[test]
    fn the_local_prefix_of_nat64_is_refused_whatever_it_contains() {
        assert!(!is_public("64:ff9b:1::8.8.8.8".parse().unwrap()));
        assert!(!is_public("64:ff9b:1:808:8:800::".parse().unwrap()));
    }
}

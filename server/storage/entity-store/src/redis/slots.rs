//! The hash slots of a cluster.
//!
//! Used by [`super::cluster`]. A Redis without cluster mode has all slots.

use outboard_resp::Value;

/// Redis Cluster specification, "Key distribution model".
const SLOTS: usize = 16384;

/// The primary of each slot.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slots {
    nodes: Vec<String>,
    /// Indices of nodes; `None` for a slot without a node.
    owners: Vec<Option<u16>>,
}

impl Slots {
    /// All slots belong to one node.
    pub(crate) fn of_one(address: &str) -> Self {
        Self { nodes: vec![address.to_owned()], owners: vec![Some(0); SLOTS] }
    }

    /// Reads the reply to `CLUSTER SLOTS` from the node at `asked`. `None` if no slot has a node.
    pub(crate) fn read(reply: Value, asked: &str) -> Option<Self> {
        let mut slots = Self { nodes: Vec::new(), owners: vec![None; SLOTS] };
        for range in reply.into_array().unwrap_or_default() {
            let mut parts = range.into_array().unwrap_or_default().into_iter();
            let mut number = || usize::try_from(parts.next()?.as_integer()?).ok();
            let (first, last) = (number()?, number()?);
            let mut primary = parts.next()?.into_array().unwrap_or_default().into_iter();
            let host = primary.next()?.into_bytes().unwrap_or_default();
            let port = primary.next()?.as_integer()?;
            let address = address(&String::from_utf8(host).ok()?, port, asked);
            let owner = slots.node(&address);
            let last = last.min(SLOTS - 1);
            slots.owners.get_mut(first..=last)?.fill(owner);
        }
        Some(slots).filter(|slots| slots.owners.iter().any(Option::is_some))
    }

    /// The primary of a slot, as far as known.
    pub(crate) fn owner(&self, slot: u16) -> Option<&str> {
        let owner = (*self.owners.get(usize::from(slot))?)?;
        self.nodes.get(usize::from(owner)).map(String::as_str)
    }

    /// Assigns a slot to a node.
    pub(crate) fn set(&mut self, slot: u16, address: &str) {
        let owner = self.node(address);
        if let Some(place) = self.owners.get_mut(usize::from(slot)) {
            *place = owner;
        }
    }

    /// The index of a node, which is added if it is new.
    fn node(&mut self, address: &str) -> Option<u16> {
        let known = self.nodes.iter().position(|node| node == address);
        let index = known.unwrap_or_else(|| {
            self.nodes.push(address.to_owned());
            self.nodes.len() - 1
        });
        u16::try_from(index).ok()
    }

    /// The primaries that have slots.
    pub(crate) fn primaries(&self) -> Vec<String> {
        let has = |index: usize| self.owners.contains(&u16::try_from(index).ok());
        let named = self.nodes.iter().enumerate().filter(|(index, _)| has(*index));
        named.map(|(_, address)| address.clone()).collect()
    }
}

/// The address of a node; a node without a host is at the host that was asked.
fn address(host: &str, port: i64, asked: &str) -> String {
    let asked_host = asked.rsplit_once(':').map_or(asked, |(host, _)| host);
    match host {
        "" | "?" => format!("{asked_host}:{port}"),
        host if host.contains(':') => format!("[{host}]:{port}"),
        host => format!("{host}:{port}"),
    }
}

/// The target of a redirection: `MOVED slot address` or `ASK slot address`.
pub(crate) fn redirection(error: &str, asked: &str) -> Option<Redirection> {
    let mut words = error.split(' ');
    let is_asking = match words.next()? {
        "MOVED" => false,
        "ASK" => true,
        _ => return None,
    };
    let slot = words.next()?.parse().ok()?;
    let (host, port) = words.next()?.rsplit_once(':')?;
    Some(Redirection { slot, address: address(host, port.parse().ok()?, asked), is_asking })
}

/// The node that a command has to be sent to instead.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Redirection {
    pub(crate) slot: u16,
    pub(crate) address: String,
    /// Only this command, after `ASKING`: the slot is being imported.
    pub(crate) is_asking: bool,
}

/// The slot of a key: CRC-16/XMODEM of its hash tag, which is the content of its first braces, or
/// of the whole key.
pub(crate) fn slot(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|byte| *byte == b'}').filter(|close| *close > 0)?;
        Some(&rest[..close])
    });
    let crc = tag.unwrap_or(key).iter().fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| match crc & 0x8000 {
            0 => crc << 1,
            _ => (crc << 1) ^ 0x1021,
        })
    });
    crc % SLOTS as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_slots_that_redis_gives_them() {
        // CLUSTER KEYSLOT of redis-server 7.0.
        for (key, expected) in [
            (&b""[..], 0),
            (b"a", 15495),
            (b"123456789", 12739),
            (b"{user1000}.following", 3443),
            (b"{user1000}.followers", 3443),
            (b"foo{}{bar}", 8363),
            (b"foo{{bar}}zap", 4015),
        ] {
            assert_eq!(slot(key), expected, "{key:?}");
        }
    }

    #[test]
    fn a_moved_slot_has_its_new_node() {
        let mut slots = Slots::of_one("h:1");
        slots.set(7, "h:2");
        assert_eq!((slots.owner(7), slots.owner(8)), (Some("h:2"), Some("h:1")));
        assert_eq!(slots.primaries(), ["h:1", "h:2"]);
        assert_eq!(slots.owner(16384), None);
    }

    #[test]
    fn redirections_are_read_and_other_errors_are_none() {
        let moved = redirection("MOVED 3999 127.0.0.1:6381", "h:1").unwrap();
        assert_eq!((moved.slot, &*moved.address, moved.is_asking), (3999, "127.0.0.1:6381", false));
        let ask = redirection("ASK 3 :6381", "h:1").unwrap();
        assert_eq!((&*ask.address, ask.is_asking), ("h:6381", true));
        for error in ["", "MOVED", "MOVED x h:1", "MOVED 1 h", "CLUSTERDOWN The cluster is down"] {
            assert_eq!(redirection(error, "h:1"), None, "{error}");
        }
    }

    fn range(first: i64, last: i64, host: &str, port: i64) -> Value {
        let node = Value::Array(vec![Value::Bytes(host.into()), Value::Integer(port)]);
        Value::Array(vec![Value::Integer(first), Value::Integer(last), node])
    }

    #[test]
    fn ranges_of_slots_belong_to_their_primaries() {
        let ranges = vec![range(0, 99, "", 1), range(100, 99_999, "::1", 2), range(7, 7, "h", 3)];
        let slots = Slots::read(Value::Array(ranges), "asked:6379").unwrap();
        let owners = [0, 7, 99, 100, 16383].map(|slot| slots.owner(slot).unwrap());
        assert_eq!(owners, ["asked:1", "h:3", "asked:1", "[::1]:2", "[::1]:2"]);
        assert_eq!(slots.owner(16384), None);
        assert_eq!(slots.primaries(), ["asked:1", "[::1]:2", "h:3"]);
    }

    #[test]
    fn ranges_that_no_redis_has_are_no_slots() {
        for reply in [
            Value::Null,
            Value::Array(vec![]),
            Value::Array(vec![Value::Null]),
            Value::Array(vec![range(5, 4, "h", 1)]),
            Value::Array(vec![range(-1, 4, "h", 1)]),
            Value::Array(vec![range(20_000, 30_000, "h", 1)]),
            Value::Array(vec![range(i64::MAX, i64::MAX, "h", 1)]),
            Value::Array(vec![range(0, 1, "h", 1), range(2, -3, "h", 1)]),
            Value::Array(vec![Value::Array(vec![Value::Integer(0), Value::Integer(1)])]),
        ] {
            assert!(Slots::read(reply.clone(), "h:1").is_none(), "{reply:?}");
        }
    }
}

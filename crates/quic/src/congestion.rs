//! [`CongestionControl`]: how fast an endpoint sends into a network that delays and loses datagrams.
//!
//! Chosen by the application for all connections of an endpoint. Invariant: a connection begins with the window
//! of RFC 9002 7.2, whatever the algorithm.

use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig};
use std::path::Path;
use std::sync::Arc;

/// The initial window: ten datagrams, and no more than 14,720 bytes (RFC 9002 7.2).
const INITIAL_WINDOW_BYTES: u64 = 10 * 1_200;
/// The algorithm of TCP connections (tcp(7)).
const TCP_SETTING: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CongestionControl {
    /// RFC 9438: a lost datagram is a sign of congestion.
    Cubic,
    /// Sends at the rate at which datagrams are acknowledged; losses alone do not lower it.
    Bbr,
}

impl CongestionControl {
    /// The machine's algorithm for TCP, so that a response does not depend on the protocol that brings it.
    /// Algorithms that exist for TCP alone are replaced by CUBIC.
    pub fn of_machine() -> Self {
        Self::of_tcp(Path::new(TCP_SETTING))
    }

    fn of_tcp(setting: &Path) -> Self {
        match std::fs::read_to_string(setting) {
            Ok(name) if name.trim_end() == "bbr" => Self::Bbr,
            _ => Self::Cubic,
        }
    }

    pub(crate) fn factory(self) -> Arc<dyn ControllerFactory + Send + Sync> {
        match self {
            Self::Cubic => {
                let mut config = CubicConfig::default();
                config.initial_window(INITIAL_WINDOW_BYTES);
                Arc::new(config)
            }
            Self::Bbr => {
                let mut config = BbrConfig::default();
                config.initial_window(INITIAL_WINDOW_BYTES);
                Arc::new(config)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quic_follows_the_setting_of_tcp() {
        let setting = std::env::temp_dir().join(format!("outboard-quic-{}", std::process::id()));
        let chosen = |name: &str| {
            std::fs::write(&setting, name).expect("the temporary directory is writable");
            CongestionControl::of_tcp(&setting)
        };
        let algorithms = [chosen("bbr\n"), chosen("cubic\n"), chosen("dctcp\n")];
        std::fs::remove_file(&setting).expect("it was written");
        use CongestionControl::{Bbr, Cubic};
        assert_eq!(algorithms, [Bbr, Cubic, Cubic]);
        assert_eq!(CongestionControl::of_tcp(&setting), Cubic);
    }

    #[test]
    fn connections_begin_with_the_same_window() {
        for algorithm in [CongestionControl::Cubic, CongestionControl::Bbr] {
            let controller = algorithm.factory().build(std::time::Instant::now(), 1_200);
            assert_eq!(controller.initial_window(), INITIAL_WINDOW_BYTES);
            assert_eq!(controller.window(), INITIAL_WINDOW_BYTES);
        }
    }
}

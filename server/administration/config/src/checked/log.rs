//! The access, error and slow logs: their destinations.

use super::context::Context;
use crate::diagnostic::Kind;
use crate::raw::{Log, LogTarget};
use crate::scalar::Fault;

pub(super) fn log(written: &Log, place: &[&str], context: &mut Context<'_>) -> Log {
    let mut log = written.clone();
    let targets = [
        ("access", &mut log.access.path),
        ("error", &mut log.error.path),
        ("slow", &mut log.slow.path),
    ];
    for (section, target) in targets {
        check_target(target, &[place, &[section, "path"]].concat(), context);
    }
    log
}

fn check_target(target: &mut LogTarget, place: &[&str], context: &mut Context<'_>) {
    let LogTarget::File(path) = target else { return };
    match path.to_str().and_then(|path| path.strip_prefix("syslog:")) {
        Some(receiver) => {
            let fault = Fault::new(format!("`{receiver}` is not a receiver of syslog"))
                .hint("write \"syslog\", \"syslog:unix:/dev/log\" or \"syslog:udp:127.0.0.1:514\"");
            context.value(place, Kind::BadValue, fault);
        }
        None => *path = context.new_file(place, path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use std::path::{Path, PathBuf};

    fn target_of(written: &str) -> Option<LogTarget> {
        let text = format!("[app.a]\nroot = \"/tmp\"\n[log.error]\npath = \"{written}\"\n");
        Some(Config::parse(&text, Path::new("/tmp/test.toml")).ok()?.log.error.path)
    }

    #[test]
    fn a_log_can_go_to_the_journal_or_to_syslog() {
        let syslog = |path: &str| Some(LogTarget::SyslogUnix(PathBuf::from(path)));
        let udp = |address: &str| Some(LogTarget::SyslogUdp(address.parse().expect("an address")));
        assert_eq!(target_of("journald"), Some(LogTarget::Journal));
        assert_eq!(target_of("syslog"), syslog("/dev/log"));
        assert_eq!(target_of("syslog:unix:/run/log"), syslog("/run/log"));
        assert_eq!(target_of("syslog:udp:127.0.0.1:514"), udp("127.0.0.1:514"));
        assert_eq!(target_of("syslog:udp:[::1]:514"), udp("[::1]:514"));
        for bad in ["syslog:", "syslog:unix:run/log", "syslog:udp:localhost", "syslog:tcp:[::1]:1"]
        {
            assert_eq!(target_of(bad), None, "{bad}");
        }
        assert_eq!(target_of("/tmp/syslog"), Some(LogTarget::File(PathBuf::from("/tmp/syslog"))));
    }
}

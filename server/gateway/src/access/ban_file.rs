//! [`BanFile`]: the bans on disk, so that they survive a restart.
//!
//! Owned by [`super::SharedAccess`]; written on a thread by the commands that change the list. A line is a
//! network, the time at which its ban ends (`-`: never; 0: it is unbanned) and the reason. Invariants: a
//! change is appended and on disk before its command is confirmed; of a line that a crash has cut nothing is
//! read; the file is rewritten before it is much longer than the list.

use outboard_access::{Ban, BanList, Network};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Lines that are appended before the file is rewritten.
const APPENDED_MAX: usize = 100_000;
/// A list of the most bans with the longest reasons has less.
const FILE_MAX_BYTES: u64 = 256 << 20;

/// See the module.
#[derive(Debug)]
pub(super) struct BanFile {
    path: PathBuf,
    appended: usize,
}

impl BanFile {
    /// Reads the file into `bans`, and rewrites it. It may not exist yet.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub(super) fn open(path: PathBuf, bans: &BanList, now_s: u64) -> io::Result<Self> {
        match File::open(&path) {
            Ok(file) => {
                let mut text = Vec::new();
                file.take(FILE_MAX_BYTES).read_to_end(&mut text)?;
                read(&text, bans, now_s);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let mut file = Self { path, appended: 0 };
        file.rewrite(bans, now_s)?;
        Ok(file)
    }

    /// Writes a change: a ban, or the end of one.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn append(
        &mut self,
        (network, ban): (&Network, Option<&Ban>),
        bans: &BanList,
        now_s: u64,
    ) -> io::Result<()> {
        if self.appended >= APPENDED_MAX {
            return self.rewrite(bans, now_s);
        }
        self.appended += 1;
        let mut file = OpenOptions::new().append(true).create(true).open(&self.path)?;
        file.write_all(line(network, ban).as_bytes())?;
        file.sync_data()
    }

    fn rewrite(&mut self, bans: &BanList, now_s: u64) -> io::Result<()> {
        let lines = bans.list(now_s).into_iter().map(|(network, ban)| line(&network, Some(&ban)));
        let text: String = lines.collect();
        let new = self.path.with_extension("new");
        let mut file = File::create(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_data()?;
        fs::rename(&new, &self.path)?;
        self.appended = 0;
        sync_directory(&self.path)
    }
}

fn sync_directory(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}

fn line(network: &Network, ban: Option<&Ban>) -> String {
    let until = match ban.map(|ban| ban.until_s) {
        None => "0".to_owned(),
        Some(None) => "-".to_owned(),
        Some(Some(until_s)) => until_s.to_string(),
    };
    format!("{network} {until} {}\n", ban.map_or("", |ban| &ban.reason))
}

/// Applies complete lines in their order; a line that is not valid is left out.
fn read(text: &[u8], bans: &BanList, now_s: u64) {
    let complete = text.iter().rposition(|&byte| byte == b'\n').unwrap_or_default();
    let text = String::from_utf8_lossy(&text[..complete]);
    for line in text.lines() {
        let mut parts = line.splitn(3, ' ');
        let network = parts.next().and_then(|text| text.parse::<Network>().ok());
        let (Some(network), Some(until)) = (network, parts.next()) else { continue };
        let until_s = match until {
            "-" => None,
            until => Some(until.parse().unwrap_or(0)),
        };
        if until_s.is_some_and(|until_s| until_s <= now_s) {
            bans.unban(&network);
            continue;
        }
        let reason = parts.next().unwrap_or_default().to_owned();
        // There are no more than when they were written.
        let _ = bans.ban(network, Ban { until_s, reason }, now_s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ban(until_s: Option<u64>, reason: &str) -> Ban {
        Ban { until_s, reason: reason.to_owned() }
    }

    fn directory(name: &str) -> PathBuf {
        let name = format!("outboard-bans-{}-{name}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        directory
    }

    #[test]
    fn bans_are_read_as_they_were_written() {
        let directory = directory("written");
        let (path, bans) = (directory.join("bans"), BanList::default());
        let mut file = BanFile::open(path.clone(), &bans, 10).unwrap();
        let networks = ["10.0.0.0/8", "2001:db8::/64", "192.0.2.1", "192.0.2.2"];
        let networks = networks.map(|text| text.parse::<Network>().unwrap());
        let all = [
            (networks[0], ban(None, "a scanner of ports")),
            (networks[1], ban(Some(100), "")),
            (networks[2], ban(Some(20), "short")),
            (networks[3], ban(None, "an error")),
        ];
        for (network, ban) in &all {
            bans.ban(*network, ban.clone(), 10).unwrap();
            file.append((network, Some(ban)), &bans, 10).unwrap();
        }
        bans.unban(&networks[3]);
        file.append((&networks[3], None), &bans, 10).unwrap();
        fs::write(&path, [&fs::read(&path).unwrap()[..], b"nonsense\n10.9.9.9 - cu"].concat())
            .unwrap();
        let again = BanList::default();
        BanFile::open(path.clone(), &again, 50).unwrap();
        let expected = [all[0].clone(), all[1].clone()];
        assert_eq!(again.list(50), expected);
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
        fs::remove_dir_all(directory).unwrap();
    }
}

//! [`LocalAuthority`]: the authority of this machine, for development.
//!
//! Its certificates are for names of `localhost`, and for all names with `directory = "local"`. Browsers
//! trust them after `outboard trust`. Invariant: its key is stored before anything is signed with it, and
//! never changes, so that a machine trusts it once.

use crate::storage::{self, Storage};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustix::fs::{FlockOperation, flock};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use time::OffsetDateTime;

/// The name that lists of authorities show.
pub(crate) const NAME: &str = "Outboard local authority";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const AUTHORITY_DAYS: u32 = 3650;
/// Browsers accept no more than 398 days of an authority that they do not know.
const CERTIFICATE_DAYS: u32 = 90;

/// See the module.
#[derive(Debug)]
pub struct LocalAuthority {
    key: KeyPair,
    certificate: PathBuf,
}

impl LocalAuthority {
    /// Opens the authority in a directory of certificates, and creates it if there is none.
    ///
    /// # Errors
    /// The file that cannot be used.
    pub fn open(directory: &Path) -> Result<Self, String> {
        Self::of(&Storage::open(directory)?)
    }

    pub(crate) fn of(storage: &Storage) -> Result<Self, String> {
        let lock = storage.local("lock");
        let failed = |error: std::io::Error| format!("{}: {error}", lock.display());
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&lock).map_err(failed)?;
        flock(&file, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
        let (key_file, certificate) =
            (storage.local("authority.key"), storage.local("authority.pem"));
        let key = match storage::read(&key_file)? {
            Some(pem) => KeyPair::from_pem(&String::from_utf8_lossy(&pem))
                .map_err(|error| format!("{}: {error}", key_file.display()))?,
            None => {
                let key = KeyPair::generate().map_err(|error| error.to_string())?;
                storage::write(&key_file, key.serialize_pem().as_bytes())?;
                key
            }
        };
        if storage::read(&certificate)?.is_none() {
            let own = params().self_signed(&key).map_err(|error| error.to_string())?;
            storage::write(&certificate, own.pem().as_bytes())?;
        }
        Ok(Self { key, certificate })
    }

    /// The file with the certificate of the authority, in PEM.
    pub fn certificate_file(&self) -> &Path {
        &self.certificate
    }

    /// A key and a certificate for a name, in PEM.
    pub(crate) fn issue(&self, name: &str) -> Result<String, String> {
        let issued = || {
            let key = KeyPair::generate()?;
            let mut params = CertificateParams::new([name.to_owned()])?;
            params.distinguished_name.push(DnType::CommonName, name);
            (params.not_before, params.not_after) = validity(CERTIFICATE_DAYS);
            params.use_authority_key_identifier_extension = true;
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            let authority = self::params();
            let issuer = Issuer::from_params(&authority, &self.key);
            let certificate = params.signed_by(&key, &issuer)?;
            Ok::<_, rcgen::Error>(key.serialize_pem() + &certificate.pem())
        };
        issued().map_err(|error| format!("the local authority: {error}"))
    }
}

fn params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, NAME);
    (params.not_before, params.not_after) = validity(AUTHORITY_DAYS);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// From yesterday on, because clocks of clients differ.
fn validity(days: u32) -> (OffsetDateTime, OffsetDateTime) {
    let now = SystemTime::now();
    ((now - DAY).into(), (now + DAY * days).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use outboard_tls::Credential;

    #[test]
    fn the_authority_remains_the_same_and_signs_for_a_name() {
        let directory = std::env::temp_dir().join(format!("local-{}", std::process::id()));
        let first = LocalAuthority::open(&directory).unwrap();
        let file = first.certificate_file().to_owned();
        let certificate = std::fs::read(&file).unwrap();
        let second = LocalAuthority::open(&directory).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), certificate);
        for authority in [first, second] {
            let pem = authority.issue("site.localhost").unwrap();
            let credential = Credential::from_pem(pem.as_bytes()).unwrap();
            assert!(credential.covers("site.localhost"));
            assert!(credential.facts().issuer.contains(NAME), "{}", credential.facts().issuer);
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

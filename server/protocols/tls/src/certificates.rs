//! [`Certificates`]: the certificates of a server by server name (RFC 6066 3), with OCSP responses.
//!
//! Read with the settings of a listener; the OCSP responses are read again while they are used. Invariants:
//! keys match their certificates; a client without a server name, or with an unknown one, gets the first
//! certificate; a file that has become invalid changes nothing.

use crate::options::{CertificateFiles, Open, invalid};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::io::{BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The longest OCSP response that is read.
const MAX_OCSP_BYTES: u64 = 64 << 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct Certificates(Vec<Certificate>);

impl Certificates {
    pub(crate) fn read(
        files: &[CertificateFiles],
        provider: &CryptoProvider,
        open: Open<'_>,
    ) -> Result<Self, String> {
        let loaded = files.iter().map(|files| Certificate::read(files, provider, open));
        Ok(Self(loaded.collect::<Result<_, _>>()?))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The index of the certificate for a name: an exact match, a wildcard, or the first.
    pub(crate) fn index_of(&self, name: &str) -> usize {
        let of = |name: &str| self.0.iter().position(|certificate| certificate.has_name(name));
        of(name).or_else(|| of(&wildcard_of(name)?)).unwrap_or(0)
    }

    /// Whether a certificate other than this one is valid for the name.
    pub(crate) fn is_for_another(&self, index: usize, name: &str) -> bool {
        let covers = |certificate: &Certificate| certificate.covers(name);
        !self.0.get(index).is_some_and(covers) && self.0.iter().any(covers)
    }

    pub(crate) fn have_ocsp(&self) -> bool {
        self.0.iter().any(|certificate| certificate.ocsp.is_some())
    }

    /// Reads the OCSP responses whose files have changed, and returns why some cannot be used.
    pub(crate) fn refresh_ocsp(&self, open: Open<'_>) -> Vec<String> {
        self.0.iter().filter_map(|certificate| certificate.refresh_ocsp(open).err()).collect()
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let index = hello.server_name().map_or(0, |name| self.index_of(name));
        self.0.get(index).map(Certificate::certified)
    }
}

/// A wildcard stands for one label (RFC 9525 6.3).
fn wildcard_of(name: &str) -> Option<String> {
    name.split_once('.').map(|(_, above)| format!("*.{above}"))
}

#[derive(Debug)]
struct Certificate {
    /// In lower case, as rustls passes server names.
    names: Vec<String>,
    certified: RwLock<Arc<CertifiedKey>>,
    ocsp: Option<OcspFile>,
}

impl Certificate {
    fn read(
        files: &CertificateFiles,
        provider: &CryptoProvider,
        open: Open<'_>,
    ) -> Result<Self, String> {
        let opened = |path: &Path| open(path).map_err(|error| invalid(path, &error));
        let chain = CertificateDer::pem_reader_iter(BufReader::new(opened(&files.chain)?))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| invalid(&files.chain, &error))?;
        let Some(first) = chain.first() else {
            return Err(invalid(&files.chain, &"there is no certificate in it"));
        };
        let names = webpki::EndEntityCert::try_from(first)
            .map_err(|error| invalid(&files.chain, &error))?
            .valid_dns_names()
            .map(str::to_ascii_lowercase)
            .collect();
        let key = PrivateKeyDer::from_pem_reader(BufReader::new(opened(&files.key)?))
            .map_err(|error| invalid(&files.key, &error))?;
        let certified =
            CertifiedKey::from_der(chain, key, provider).map_err(|error| match error {
                rustls::Error::InconsistentKeys(_) => {
                    let chain = files.chain.display();
                    invalid(
                        &files.key,
                        &format!("this is not the key of the certificate in {chain}"),
                    )
                }
                error => invalid(&files.key, &error),
            })?;
        let ocsp = files.ocsp.as_deref().map(OcspFile::new);
        let certificate = Self { names, certified: RwLock::new(Arc::new(certified)), ocsp };
        certificate.refresh_ocsp(open)?;
        Ok(certificate)
    }

    fn certified(&self) -> Arc<CertifiedKey> {
        self.certified.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn refresh_ocsp(&self, open: Open<'_>) -> Result<(), String> {
        let Some(file) = &self.ocsp else { return Ok(()) };
        if let Some(response) = file.read_if_changed(open)? {
            let successor = CertifiedKey { ocsp: Some(response), ..(*self.certified()).clone() };
            *self.certified.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(successor);
        }
        Ok(())
    }

    fn has_name(&self, name: &str) -> bool {
        self.names.iter().any(|theirs| theirs == name)
    }

    /// Whether the certificate is valid for this name, exactly or by wildcard.
    fn covers(&self, name: &str) -> bool {
        self.has_name(name) || wildcard_of(name).is_some_and(|any| self.has_name(&any))
    }
}

/// The file of an OCSP response.
#[derive(Debug)]
struct OcspFile {
    path: PathBuf,
    /// Device, inode, time of change and size of the file that was read last.
    seen: Mutex<Option<[u64; 5]>>,
}

impl OcspFile {
    fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), seen: Mutex::new(None) }
    }

    /// The response; `None` if the file is the one that was read before. An invalid one is reported once.
    fn read_if_changed(&self, open: Open<'_>) -> Result<Option<Vec<u8>>, String> {
        let failed = |error: std::io::Error| invalid(&self.path, &error);
        let file = open(&self.path).map_err(failed)?;
        let facts = file.metadata().map_err(failed)?;
        let (changed_s, changed_ns) = (facts.mtime() as u64, facts.mtime_nsec() as u64);
        let stamp = Some([facts.dev(), facts.ino(), changed_s, changed_ns, facts.size()]);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen == stamp {
            return Ok(None);
        }
        *seen = stamp;
        let mut response = Vec::new();
        file.take(MAX_OCSP_BYTES + 1).read_to_end(&mut response).map_err(failed)?;
        match is_successful(&response) {
            true => Ok(Some(response)),
            false => Err(invalid(&self.path, &"this is not a successful OCSP response in DER")),
        }
    }
}

/// Whether it is one sequence (RFC 6960 4.2.1) that begins with the status `successful`.
fn is_successful(response: &[u8]) -> bool {
    const SUCCESSFUL: [u8; 3] = [0x0a, 1, 0];
    let (length, content) = match response {
        [0x30, 0x82, a, b, rest @ ..] => (usize::from(u16::from_be_bytes([*a, *b])), rest),
        [0x30, 0x81, a, rest @ ..] => (usize::from(*a), rest),
        _ => return false,
    };
    content.len() == length && content.starts_with(&SUCCESSFUL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_successful_ocsp_responses_are_used() {
        let response = |status, rest: usize| {
            let content = [&[0x0a, 1, status][..], &vec![7; rest]].concat();
            let length = u16::try_from(content.len()).unwrap().to_be_bytes();
            [&[0x30, 0x82][..], &length, &content].concat()
        };
        assert!(is_successful(&response(0, 400)));
        // `tryLater`.
        assert!(!is_successful(&response(3, 400)));
        let whole = response(0, 400);
        assert!(!is_successful(&whole[..whole.len() - 1]));
        assert!(!is_successful(b"-----BEGIN OCSP RESPONSE-----"));
        assert!(!is_successful(b""));
    }

    #[test]
    fn an_ocsp_file_is_read_when_it_has_changed() {
        let directory = std::env::temp_dir().join(format!("ocsp-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("response.der");
        let first = [0x30, 0x81, 3, 0x0a, 1, 0];
        let second = [0x30, 0x81, 4, 0x0a, 1, 0, 7];
        let file = OcspFile::new(&path);
        let open: Open<'_> = &|path| std::fs::File::open(path);
        assert!(file.read_if_changed(open).unwrap_err().contains("response.der"));
        std::fs::write(&path, first).unwrap();
        assert_eq!(file.read_if_changed(open), Ok(Some(first.to_vec())));
        assert_eq!(file.read_if_changed(open), Ok(None));
        std::fs::write(&path, second).unwrap();
        assert_eq!(file.read_if_changed(open), Ok(Some(second.to_vec())));
        std::fs::write(&path, b"nothing of that kind").unwrap();
        assert!(file.read_if_changed(open).is_err());
        assert_eq!(file.read_if_changed(open), Ok(None));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

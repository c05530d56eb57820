//! Keys, requests for certificates (RFC 2986), and the certificates of challenges.

use crate::acme::base64url;
use aws_lc_rs::digest::{SHA256, digest};
use outboard_tls::Facts;
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};

/// A new key for a certificate, in PEM.
pub(crate) fn generate() -> Result<String, String> {
    KeyPair::generate().map(|key| key.serialize_pem()).map_err(|error| error.to_string())
}

/// The request for a certificate for a name, in base64url (RFC 8555 7.4).
pub(crate) fn signing_request(name: &str, key: &str) -> Result<String, String> {
    let request = || {
        let mut params = CertificateParams::new([name.to_owned()])?;
        params.distinguished_name = DistinguishedName::new();
        params.serialize_request(&KeyPair::from_pem(key)?)
    };
    request().map(|request| base64url(request.der())).map_err(|error| error.to_string())
}

/// The certificate that responds to a challenge over TLS (RFC 8737 3), with its key, in PEM.
pub(crate) fn challenge(name: &str, authorization: &str) -> Result<String, String> {
    let signed = || {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new([name.to_owned()])?;
        let digest = digest(&SHA256, authorization.as_bytes());
        params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest.as_ref())];
        Ok::<_, rcgen::Error>(params.self_signed(&key)?.pem() + &key.serialize_pem())
    };
    signed().map_err(|error| error.to_string())
}

/// The identifier of a certificate for its authority (RFC 9773 4.1).
pub(crate) fn identifier(facts: &Facts) -> Option<String> {
    let authority_key = facts.authority_key.as_ref()?;
    Some(format!("{}.{}", base64url(authority_key), base64url(&facts.serial)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_certificate_of_a_challenge_can_be_served() {
        let challenge = challenge("a.test", "token.key").unwrap();
        let issued = outboard_tls::Issued::default();
        assert_eq!(issued.set_challenge("a.test", challenge.as_bytes()), Ok(()));
        assert!(issued.set_challenge("a.test", b"nothing").is_err());
        // No other client gets it.
        assert!(issued.find("a.test").is_none());
    }

    #[test]
    fn a_request_can_name_a_wildcard() {
        let key = generate().unwrap();
        assert!(signing_request("*.a.test", &key).is_ok());
        assert!(signing_request("a.test", "no key").is_err());
    }

    #[test]
    fn the_identifier_has_the_form_of_the_rfc() {
        // The example of RFC 9773 4.1.
        let facts = Facts {
            issuer: String::new(),
            not_before_s: 0,
            not_after_s: 0,
            serial: vec![0x00, 0x87, 0x65, 0x43, 0x21],
            authority_key: Some(vec![
                0x69, 0x88, 0x5b, 0x6b, 0x87, 0x46, 0x40, 0x41, 0xe1, 0xb3, 0x7b, 0x84, 0x7b, 0xa0,
                0xae, 0x2c, 0xde, 0x01, 0xc8, 0xd4,
            ]),
        };
        assert_eq!(identifier(&facts).unwrap(), "aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE");
    }
}

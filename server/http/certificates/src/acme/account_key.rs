//! [`AccountKey`]: the key of an account, and the signatures of its requests (RFC 7515, RFC 8555 6.2).

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

/// A key of the curve P-256.
#[derive(Debug)]
pub(crate) struct AccountKey(EcdsaKeyPair);

/// How a request names its account.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Signer<'a> {
    /// By its key, before there is an account.
    Key,
    /// By its URL.
    Account(&'a str),
}

impl AccountKey {
    /// A new key, as PKCS #8 in base64url.
    pub(crate) fn generate() -> Result<String, String> {
        let key =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        key.map(|key| base64url(key.as_ref())).map_err(|_| "no random numbers for a key".to_owned())
    }

    /// Reads what [`AccountKey::generate`] has made.
    pub(crate) fn read(encoded: &str) -> Result<Self, String> {
        let invalid = || "the key of the account is invalid".to_owned();
        let pkcs8 = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| invalid())?;
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &pkcs8);
        key.map(Self).map_err(|_| invalid())
    }

    /// The body of a request; without a payload it is a `POST-as-GET` (RFC 8555 6.3).
    pub(crate) fn signed(
        &self,
        url: &str,
        nonce: &str,
        signer: Signer<'_>,
        payload: Option<&Value>,
    ) -> Result<Vec<u8>, String> {
        let mut protected = json!({ "alg": "ES256", "nonce": nonce, "url": url });
        match signer {
            Signer::Key => protected["jwk"] = self.public(),
            Signer::Account(account) => protected["kid"] = account.into(),
        }
        let payload = payload.map(Value::to_string).unwrap_or_default();
        let (protected, payload) = (base64url(protected.to_string()), base64url(payload));
        let message = format!("{protected}.{payload}");
        let signature = self.0.sign(&SystemRandom::new(), message.as_bytes());
        let signature = signature.map_err(|_| "the request cannot be signed")?;
        let body = json!({
            "protected": protected,
            "payload": payload,
            "signature": base64url(signature.as_ref()),
        });
        Ok(body.to_string().into_bytes())
    }

    /// The proof that this key belongs to an account that exists at the authority (RFC 8555 7.3.4).
    pub(crate) fn external_binding(&self, url: &str, id: &str, key: &str) -> Result<Value, String> {
        let secret =
            URL_SAFE_NO_PAD.decode(key.trim_end_matches('=')).or_else(|_| URL_SAFE.decode(key));
        let secret = secret.map_err(|_| "the key of `external_account` is not base64url")?;
        let protected = base64url(json!({ "alg": "HS256", "kid": id, "url": url }).to_string());
        let payload = base64url(self.public().to_string());
        let message = format!("{protected}.{payload}");
        let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &secret), message.as_bytes());
        Ok(json!({
            "protected": protected,
            "payload": payload,
            "signature": base64url(signature.as_ref()),
        }))
    }

    /// The response to a challenge (RFC 8555 8.1).
    pub(crate) fn authorization(&self, token: &str) -> String {
        // RFC 7638 3: the required members, in lexicographic order, without white space.
        let key = self.public();
        let (x, y) = (key["x"].as_str().unwrap_or_default(), key["y"].as_str().unwrap_or_default());
        let text = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
        format!("{token}.{}", base64url(digest(&SHA256, text.as_bytes())))
    }

    /// RFC 7518 6.2.
    fn public(&self) -> Value {
        // An uncompressed point: 4, x and y (SEC 1 2.3.3).
        let point = self.0.public_key().as_ref();
        let (x, y) = point[1..].split_at(point.len() / 2);
        json!({ "crv": "P-256", "kty": "EC", "x": base64url(x), "y": base64url(y) })
    }
}

/// Without padding (RFC 7515 2).
pub(crate) fn base64url(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

    fn key() -> AccountKey {
        AccountKey::read(&AccountKey::generate().unwrap()).unwrap()
    }

    fn decoded(part: &Value) -> Vec<u8> {
        URL_SAFE_NO_PAD.decode(part.as_str().unwrap()).unwrap()
    }

    #[test]
    fn a_request_is_signed_by_the_key_that_it_names() {
        let key = key();
        let body = key.signed("https://a.test/x", "n1", Signer::Key, Some(&json!({ "a": 1 })));
        let body: Value = serde_json::from_slice(&body.unwrap()).unwrap();
        let head: Value = serde_json::from_slice(&decoded(&body["protected"])).unwrap();
        assert_eq!((&head["nonce"], &head["url"]), (&json!("n1"), &json!("https://a.test/x")));
        let point = [vec![4], decoded(&head["jwk"]["x"]), decoded(&head["jwk"]["y"])].concat();
        let text = |name: &str| body[name].as_str().unwrap().to_owned();
        let message = format!("{}.{}", text("protected"), text("payload"));
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
        assert!(public.verify(message.as_bytes(), &decoded(&body["signature"])).is_ok());
        assert!(public.verify(b"another", &decoded(&body["signature"])).is_err());
    }

    #[test]
    fn a_request_without_a_payload_has_an_empty_one() {
        let body =
            key().signed("https://a.test/x", "n1", Signer::Account("https://a.test/1"), None);
        let body: Value = serde_json::from_slice(&body.unwrap()).unwrap();
        assert_eq!(body["payload"], "");
        let head: Value = serde_json::from_slice(&decoded(&body["protected"])).unwrap();
        assert_eq!((&head["kid"], head.get("jwk")), (&json!("https://a.test/1"), None));
    }

    #[test]
    fn the_key_of_an_external_account_may_have_padding() {
        let key = key();
        assert!(key.external_binding("https://a.test/new", "kid-1", "c2VjcmV0cw==").is_ok());
        assert!(key.external_binding("https://a.test/new", "kid-1", "c2VjcmV0cw").is_ok());
        assert!(key.external_binding("https://a.test/new", "kid-1", "not base64!").is_err());
        assert!(AccountKey::read("bm90IGEga2V5").is_err());
    }
}

//! The variables, compared with what openssl(1) prints.

use super::*;
use std::path::Path;
use std::process::{Command, Stdio};

fn openssl(arguments: &[&str], directory: &Path) -> String {
    let output = Command::new("openssl")
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .expect("openssl is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_variables_are_those_of_openssl() {
    let directory = std::env::temp_dir().join(format!("client-certificate-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let subject = "/C=DE/O=Example, Inc./OU=#1 \"Team\"/CN=Jürgen/emailAddress=j@example.org";
    let new =
        ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    let rest = ["-utf8", "-days", "40", "-subj", subject, "-keyout", "a.key", "-out", "a.pem"];
    openssl(&[&new[..], &rest].concat(), &directory);
    openssl(&["x509", "-in", "a.pem", "-outform", "DER", "-out", "a.der"], &directory);
    let certificate = std::fs::read(directory.join("a.der")).unwrap();
    let variables = variables(&certificate);
    let value = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.unwrap_or_else(|| panic!("{name} is missing")).1.to_string()
    };
    let printed = |option: &[&str]| {
        let text = openssl(&[&["x509", "-in", "a.pem", "-noout"], option].concat(), &directory);
        text.trim_end().split_once('=').unwrap().1.to_owned()
    };
    // As mod_ssl does: RFC 2253, with UTF-8 as it is.
    let form = "sep_comma_plus,dn_rev,sname,utf8,esc_2253,esc_ctrl";
    assert_eq!(value("SSL_CLIENT_S_DN"), printed(&["-subject", "-nameopt", form]));
    assert_eq!(value("SSL_CLIENT_I_DN"), value("SSL_CLIENT_S_DN"));
    assert_eq!(value("SSL_CLIENT_M_SERIAL"), printed(&["-serial"]));
    assert_eq!(value("SSL_CLIENT_V_START"), printed(&["-startdate"]));
    assert_eq!(value("SSL_CLIENT_V_END"), printed(&["-enddate"]));
    let fingerprint = printed(&["-fingerprint", "-sha256"]).replace(':', "").to_lowercase();
    assert_eq!(value("SSL_CLIENT_FINGERPRINT_SHA256"), fingerprint);
    let file = std::fs::read_to_string(directory.join("a.pem")).unwrap();
    assert_eq!(value("SSL_CLIENT_CERT"), file);
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn times_of_both_kinds_are_read() {
    let time = |tag, text: &str| time(der::Value { tag, content: text.as_bytes(), whole: &[] });
    assert_eq!(time(der::UTC_TIME, "261103203630Z").unwrap(), "Nov  3 20:36:30 2026 GMT");
    assert_eq!(time(der::UTC_TIME, "991231235959Z").unwrap(), "Dec 31 23:59:59 1999 GMT");
    assert_eq!(time(der::GENERALIZED_TIME, "20510101000000Z").unwrap(), "Jan  1 00:00:00 2051 GMT");
    for invalid in ["", "Z", "261303203630Z", "260003203630Z", "2611032036Z", "26110320363xZ"] {
        assert_eq!(time(der::UTC_TIME, invalid), None, "{invalid}");
    }
}

#[test]
fn serial_numbers_have_no_sign_byte() {
    assert_eq!(serial(&[0, 0x9f, 1]), "9F01");
    assert_eq!(serial(&[0]), "00");
    assert_eq!(serial(&[5]), "05");
}

#[test]
fn a_damaged_certificate_has_few_variables_and_no_panic() {
    for input in [&b""[..], &[0x30, 0x82], &[0x30, 2, 0x30, 0]] {
        let variables = variables(input);
        assert_eq!(variables.len(), 2, "{variables:?}");
    }
}

//! Formats of access logs: those of nginx (`log_format`) and Apache (`LogFormat`), with the fields of Outboard.

/// A format of nginx; `None` if it has a variable without a field here.
pub(crate) fn of_nginx(format: &str) -> Option<String> {
    let mut written = String::new();
    let mut rest = format;
    while let Some((before, after)) = rest.split_once('$') {
        written.push_str(plain(before)?);
        let after = after.strip_prefix('{').unwrap_or(after);
        let end =
            after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
        let field = match &after[..end] {
            "remote_addr" => "{client}".to_owned(),
            "remote_user" => "-".to_owned(),
            "time_local" => "{time_common}".to_owned(),
            "time_iso8601" => "{time}".to_owned(),
            "request" => "{method} {target} {protocol}".to_owned(),
            "request_method" => "{method}".to_owned(),
            "request_uri" => "{target}".to_owned(),
            "server_protocol" => "{protocol}".to_owned(),
            "status" => "{status}".to_owned(),
            "body_bytes_sent" | "bytes_sent" => "{body_bytes}".to_owned(),
            "request_time" => "{duration_s}".to_owned(),
            "request_id" => "{request}".to_owned(),
            "ssl_protocol" => "{tls_protocol}".to_owned(),
            "ssl_cipher" => "{tls_cipher}".to_owned(),
            "upstream_addr" => "{upstream}".to_owned(),
            "http_referer" => "{referer}".to_owned(),
            "http_user_agent" => "{user_agent}".to_owned(),
            "host" | "http_host" | "server_name" => "{header:Host}".to_owned(),
            name => format!("{{header:{}}}", name.strip_prefix("http_")?.replace('_', "-")),
        };
        written.push_str(&field);
        rest = after[end..].strip_prefix('}').unwrap_or(&after[end..]);
    }
    written.push_str(plain(rest)?);
    Some(written)
}

/// A format of Apache; `None` if it has a directive without a field here.
pub(crate) fn of_httpd(format: &str) -> Option<String> {
    let mut written = String::new();
    let format = format.replace("\\\"", "\"");
    let mut rest = format.as_str();
    while let Some((before, after)) = rest.split_once('%') {
        written.push_str(plain(before)?);
        let after = after.trim_start_matches(['>', '<']);
        let (name, after) = match after.strip_prefix('{') {
            Some(named) => {
                let (name, after) = named.split_once('}')?;
                (Some(name), after)
            }
            None => (None, after),
        };
        let directive = after.chars().next()?;
        let field = match (directive, name) {
            ('h' | 'a', None) => "{client}",
            ('l' | 'u', None) => "-",
            ('t', None) => "[{time_common}]",
            ('r', None) => "{method} {target} {protocol}",
            ('m', None) => "{method}",
            ('H', None) => "{protocol}",
            ('s', None) => "{status}",
            ('b' | 'B' | 'O', None) => "{body_bytes}",
            ('D', None) => "{duration_us}",
            ('T', None) => "{duration_s}",
            ('v' | 'V', None) => "{header:Host}",
            ('%', None) => "%",
            ('i', Some(_)) => "",
            _ => return None,
        };
        written.push_str(field);
        match (directive, name.map(str::to_ascii_lowercase).as_deref()) {
            ('i', Some("referer")) => written.push_str("{referer}"),
            ('i', Some("user-agent")) => written.push_str("{user_agent}"),
            ('i', Some(_)) => written.push_str(&format!("{{header:{}}}", name.unwrap_or_default())),
            _ => {}
        }
        rest = &after[directive.len_utf8()..];
    }
    written.push_str(plain(rest)?);
    Some(written)
}

/// A brace begins a field here.
fn plain(text: &str) -> Option<&str> {
    (!text.contains(['{', '}'])).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_the_fields_of_outboard() {
        let nginx = "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" $http_x_id ${request_time}s";
        let expected = "{client} - - [{time_common}] \"{method} {target} {protocol}\" {status} {body_bytes} \"{referer}\" {header:x-id} {duration_s}s";
        assert_eq!(of_nginx(nginx).as_deref(), Some(expected));
        let httpd = "%h %l %u %t \\\"%r\\\" %>s %O \\\"%{Referer}i\\\" %{X-Id}i %D %%";
        let expected = "{client} - - [{time_common}] \"{method} {target} {protocol}\" {status} {body_bytes} \"{referer}\" {header:X-Id} {duration_us} %";
        assert_eq!(of_httpd(httpd).as_deref(), Some(expected));
        for unknown in ["$connection", "{ $status }", "$"] {
            assert_eq!(of_nginx(unknown), None, "{unknown}");
        }
        for unknown in ["%p", "%{a}e", "%{a", "%", "{%s}"] {
            assert_eq!(of_httpd(unknown), None, "{unknown}");
        }
    }
}

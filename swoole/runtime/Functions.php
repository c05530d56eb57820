<?php

namespace Outboard\Engine\Swoole;

/** @internal the code of swoole_last_error() */
final class LastError
{
    public static int $code = 0;

    /** @var array<int, true> errors that are not logged */
    public static array $ignored = [];

    public static function set(int $code): void
    {
        self::$code = $code;
    }
}
/** The name of an error of the range from 500 on, in words. */
function error_text(int $code): string
{
    if ($code < 500) {
        return posix_strerror($code);
    }
    static $texts = null;
    if ($texts === null) {
        $texts = [];
        foreach (CONSTANTS as $name => $value) {
            if (str_starts_with($name, 'SWOOLE_ERROR_')) {
                $texts[$value] = ucfirst(strtolower(str_replace('_', ' ', substr($name, 13))));
            }
        }
    }
    return $texts[$code] ?? "Unknown error $code";
}

/** Of Co::set(), in seconds. */
function default_timeout(string $name, float $default): float
{
    $options = \Swoole\Coroutine::getOptions() ?? [];
    return (float) ($options[$name] ?? $options['socket_timeout'] ?? $default);
}

/** An address of the family, or null. */
function resolve(string $host, int $family): ?string
{
    if ($family === AF_INET6) {
        if (filter_var($host, FILTER_VALIDATE_IP, FILTER_FLAG_IPV6) !== false) {
            return $host;
        }
        foreach (@socket_addrinfo_lookup($host, null, ['ai_family' => AF_INET6]) ?: [] as $found) {
            return socket_addrinfo_explain($found)['ai_addr']['sin6_addr'];
        }
        return null;
    }
    if (filter_var($host, FILTER_VALIDATE_IP, FILTER_FLAG_IPV4) !== false) {
        return $host;
    }
    $address = gethostbyname($host);
    return $address === $host ? null : $address;
}

/** The options ssl_* of a client or server as those of a stream context. */
function tls_options(array $setting, bool $isServer): array
{
    $verifies = !empty($setting['ssl_verify_peer']);
    $options = [
        'verify_peer' => $verifies,
        'verify_peer_name' => $verifies && isset($setting['ssl_host_name']),
        'allow_self_signed' => !empty($setting['ssl_allow_self_signed']),
        'capture_peer_cert' => true,
        'SNI_enabled' => !$isServer,
    ];
    $names = [
        'ssl_host_name' => 'peer_name', 'ssl_cafile' => 'cafile', 'ssl_client_cert_file' => 'cafile', 'ssl_capath' => 'capath', 'ssl_cert_file' => 'local_cert',
        'ssl_key_file' => 'local_pk', 'ssl_passphrase' => 'passphrase', 'ssl_ciphers' => 'ciphers', 'ssl_verify_depth' => 'verify_depth',
        'ssl_alpn' => 'alpn_protocols',
    ];
    foreach ($names as $name => $option) {
        if (isset($setting[$name])) {
            $options[$option] = $setting[$name];
        }
    }
    return $options;
}

/** The length of the first message in what was read; null: not known yet, -1: longer than allowed. */
function first_message(string $read, array $setting): ?int
{
    $limit = (int) ($setting['package_max_length'] ?? 2097152);
    if (!empty($setting['open_eof_check']) || !empty($setting['open_eof_split'])) {
        $end = $setting['package_eof'] ?? "\r\n";
        $at = strpos($read, $end);
        $length = $at === false ? null : $at + strlen($end);
    } elseif (!empty($setting['open_length_check'])) {
        $length = message_length($read, $setting);
    } else {
        return $read === '' ? null : strlen($read);
    }
    return ($length ?? strlen($read)) > $limit || $length !== null && $length < 0 ? -1 : $length;
}

/** The length of a message that begins with its length; null: not known yet, -1: none. */
function message_length(string $read, array $setting): ?int
{
    if (isset($setting['package_length_func'])) {
        $length = ($setting['package_length_func'])($read);
        return $length === 0 ? null : $length;
    }
    $type = $setting['package_length_type'] ?? 'N';
    $offset = $setting['package_length_offset'] ?? 0;
    $size = ['c' => 1, 'C' => 1, 's' => 2, 'S' => 2, 'n' => 2, 'v' => 2, 'l' => 4, 'L' => 4, 'N' => 4, 'V' => 4, 'q' => 8, 'Q' => 8, 'J' => 8, 'P' => 8][$type] ?? 4;
    if (strlen($read) < $offset + $size) {
        return null;
    }
    $length = unpack($type, $read, $offset)[1] + ($setting['package_body_offset'] ?? 0);
    return $length <= 0 ? -1 : $length;
}

/** A timeout of a client's set(), in seconds; without one that of Co::set(). */
function setting_timeout(?array $setting, string $name, string $general, float $default): float
{
    return (float) ($setting[$name] ?? $setting['timeout'] ?? default_timeout($general, $default));
}

/** The domain and type of socket(2) for a type of a client. */
function socket_family(int $type): array
{
    return match ($type & ~(SWOOLE_SSL | SWOOLE_SYNC | SWOOLE_ASYNC | SWOOLE_KEEP | SWOOLE_DTLS)) {
        SWOOLE_SOCK_TCP => [AF_INET, SOCK_STREAM],
        SWOOLE_SOCK_TCP6 => [AF_INET6, SOCK_STREAM],
        SWOOLE_SOCK_UDP => [AF_INET, SOCK_DGRAM],
        SWOOLE_SOCK_UDP6 => [AF_INET6, SOCK_DGRAM],
        SWOOLE_SOCK_UNIX_STREAM => [AF_UNIX, SOCK_STREAM],
        SWOOLE_SOCK_UNIX_DGRAM => [AF_UNIX, SOCK_DGRAM],
        default => throw new \Swoole\Exception("there is no type of socket $type", SWOOLE_ERROR_BAD_SOCKET_TYPE),
    };
}

/** A name of a socket as clients have it. */
function host_and_port(array|false $name): array|false
{
    return $name === false ? false : ['host' => $name['address'], 'port' => $name['port']];
}

/** Whether a certificate is one of a known authority, or one that signs itself where that is allowed. */
function is_trusted(string|false $certificate, array $setting, bool $allowsOwn): bool
{
    if ($certificate === false) {
        return false;
    }
    $allowsOwn = $allowsOwn || !empty($setting['ssl_allow_self_signed']);
    $is_own = openssl_x509_verify($certificate, $certificate) === 1;
    $authorities = isset($setting['ssl_cafile']) ? [$setting['ssl_cafile']] : [openssl_get_cert_locations()['default_cert_file']];
    return $is_own && $allowsOwn || openssl_x509_checkpurpose($certificate, X509_PURPOSE_ANY, array_filter($authorities, is_file(...))) === true;
}

/** Raises a warning as the extension does, with the class and method that it is about. */
function warn(string $text): false
{
    trigger_error($text, E_USER_WARNING);
    return false;
}

namespace Swoole\Coroutine\Http;

use Outboard\Engine\Swoole as Engine;

function request(string $url, string $method, mixed $data = null, ?array $options = null, ?array $headers = null, ?array $cookies = null): Client
{
    $parts = parse_url($url);
    if (!isset($parts['host'])) {
        throw new Client\Exception('the URL has no host: ' . $url);
    }
    $client = new ClientProxy($parts['host'], $parts['port'] ?? 0, ($parts['scheme'] ?? 'http') === 'https');
    $client->set($options ?? []);
    $client->setMethod($method);
    $headers === null || $client->setHeaders($headers);
    $cookies === null || $client->setCookies($cookies);
    $data === null || $client->setData($data);
    $client->execute(($parts['path'] ?? '/') . (isset($parts['query']) ? '?' . $parts['query'] : ''));
    return $client;
}

function get(string $url, ?array $options = null, ?array $headers = null, ?array $cookies = null): Client
{
    return request($url, 'GET', null, $options, $headers, $cookies);
}

function post(string $url, mixed $data, ?array $options = null, ?array $headers = null, ?array $cookies = null): Client
{
    return request($url, 'POST', $data, $options, $headers, $cookies);
}

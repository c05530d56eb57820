<?php

namespace Swoole\WebSocket;

use Outboard\Engine\Swoole as Engine;

/** A message of a WebSocket connection (RFC 6455, 5.2). */
class Frame
{
    public $fd = 0;

    public $data = '';

    public $opcode = WEBSOCKET_OPCODE_TEXT;

    public $flags = SWOOLE_WEBSOCKET_FLAG_FIN;

    public $finish = null;

    public function __toString(): string
    {
        return self::pack($this);
    }

    public static function pack(self|string $data, int $opcode = WEBSOCKET_OPCODE_TEXT, int $flags = SWOOLE_WEBSOCKET_FLAG_FIN): string
    {
        $isMasked = ($flags & SWOOLE_WEBSOCKET_FLAG_MASK) !== 0;
        if ($data instanceof self) {
            $opcode = $data->opcode;
            $flags = $data->flags | ($data->finish ? SWOOLE_WEBSOCKET_FLAG_FIN : 0);
            $isMasked = $isMasked || ($flags & SWOOLE_WEBSOCKET_FLAG_MASK) !== 0;
            $data = $data instanceof CloseFrame ? pack('n', $data->code) . $data->reason : (string) $data->data;
        }
        $isCompressed = ($flags & SWOOLE_WEBSOCKET_FLAG_COMPRESS) !== 0;
        if ($isCompressed) {
            // RFC 7692, 7.2.1: the empty block at the end is not sent.
            $data = substr(deflate_add(deflate_init(ZLIB_ENCODING_RAW), $data, ZLIB_SYNC_FLUSH), 0, -4);
        }
        $length = strlen($data);
        $head = chr(($flags & SWOOLE_WEBSOCKET_FLAG_FIN ? 0x80 : 0) | ($isCompressed || $flags & SWOOLE_WEBSOCKET_FLAG_RSV1 ? 0x40 : 0) | ($opcode & 0x0f));
        $bit = $isMasked ? 0x80 : 0;
        $head .= match (true) {
            $length < 126 => chr($bit | $length),
            $length < 65536 => pack('Cn', $bit | 126, $length),
            default => pack('CJ', $bit | 127, $length),
        };
        if (!$isMasked) {
            return $head . $data;
        }
        $mask = random_bytes(4);
        return $head . $mask . self::mask($data, $mask);
    }

    public static function unpack(string $data): self|false
    {
        $found = self::first($data);
        return $found === null ? false : $found[0];
    }

    /**
     * @internal the first frame of the text and how many bytes it has; null: it is not whole yet
     * @return array{self, int}|null
     */
    public static function first(string $read, int $limit = PHP_INT_MAX): ?array
    {
        if (strlen($read) < 2) {
            return null;
        }
        $first = ord($read[0]);
        $length = ord($read[1]) & 0x7f;
        $isMasked = (ord($read[1]) & 0x80) !== 0;
        $at = [126 => 4, 127 => 10][$length] ?? 2;
        if (strlen($read) < $at + ($isMasked ? 4 : 0)) {
            return null;
        }
        if ($length >= 126) {
            $length = unpack($length === 126 ? 'n' : 'J', $read, 2)[1];
        }
        if ($length < 0 || $length > $limit) {
            throw new \Swoole\Exception("a frame of $length bytes is longer than $limit", SWOOLE_ERROR_PACKAGE_LENGTH_TOO_LARGE);
        }
        $mask = $isMasked ? substr($read, $at, 4) : '';
        $at += strlen($mask);
        if (strlen($read) < $at + $length) {
            return null;
        }
        $data = substr($read, $at, $length);
        $data = $isMasked ? self::mask($data, $mask) : $data;
        $opcode = $first & 0x0f;
        $frame = $opcode === WEBSOCKET_OPCODE_CLOSE ? new CloseFrame() : new self();
        $frame->opcode = $opcode;
        $frame->finish = ($first & 0x80) !== 0;
        $frame->flags = ($frame->finish ? SWOOLE_WEBSOCKET_FLAG_FIN : 0) | ($first & 0x40 ? SWOOLE_WEBSOCKET_FLAG_COMPRESS : 0);
        $frame->data = $data;
        if ($frame instanceof CloseFrame && $length >= 2) {
            $frame->code = unpack('n', $data)[1];
            $frame->reason = substr($data, 2);
        }
        return [$frame, $at + $length];
    }

    private static function mask(string $data, string $mask): string
    {
        return $data ^ str_pad('', strlen($data), $mask);
    }
}

class CloseFrame extends Frame
{
    public $opcode = WEBSOCKET_OPCODE_CLOSE;

    public $code = SWOOLE_WEBSOCKET_CLOSE_NORMAL;

    public $reason = '';
}

namespace Outboard\Engine\Swoole;

use Swoole\Coroutine\Socket;
use Swoole\WebSocket\CloseFrame;
use Swoole\WebSocket\Frame;

/**
 * @internal one end of a WebSocket connection: messages are put together, pings are answered
 *
 * Invariant: a frame or a message that RFC 6455 does not permit where it comes fails the connection.
 */
final class WebSocketPeer
{
    public const KEY_SUFFIX = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

    private string $read = '';

    /** @var array{int, int, string}|null opcode, flags and data of a message whose end has not come */
    private ?array $begun = null;

    public int $errCode = 0;

    private bool $hasFailed = false;

    public function __construct(private readonly Socket $socket, private readonly bool $isClient, private readonly array $setting = [])
    {
    }

    public static function acceptFor(string $key): string
    {
        return base64_encode(sha1($key . self::KEY_SUFFIX, true));
    }

    public function send(mixed $data, int $opcode, int $flags): bool
    {
        if ($this->isClient && ($this->setting['websocket_mask'] ?? true)) {
            $flags |= SWOOLE_WEBSOCKET_FLAG_MASK;
        }
        if (empty($this->setting['websocket_compression'])) {
            $flags &= ~SWOOLE_WEBSOCKET_FLAG_COMPRESS;
        }
        $text = Frame::pack($data instanceof Frame ? $data : (string) $data, $opcode, $flags);
        return $this->socket->sendAll($text) === strlen($text);
    }

    /** The next message; '' at the end of the connection, false when the time is over. */
    public function receive(float $timeout): Frame|string|false
    {
        $until = $timeout > 0 ? microtime(true) + $timeout : INF;
        $limit = (int) ($this->setting['package_max_length'] ?? 2097152);
        while (!$this->hasFailed) {
            if ($this->violatesProtocol()) {
                return $this->fail(SWOOLE_WEBSOCKET_CLOSE_PROTOCOL_ERROR, SWOOLE_ERROR_PROTOCOL_ERROR);
            }
            try {
                $found = Frame::first($this->read, $limit);
            } catch (\Swoole\Exception $tooLong) {
                return $this->fail(SWOOLE_WEBSOCKET_CLOSE_MESSAGE_TOO_BIG, $tooLong->getCode());
            }
            if ($found === null) {
                $left = $until === INF ? $timeout : max($until - microtime(true), 0.000001);
                $piece = $this->socket->recv(65536, $left);
                if ($piece === false || $piece === '') {
                    $this->errCode = $this->socket->errCode;
                    return $piece;
                }
                $this->read .= $piece;
                continue;
            }
            $this->read = substr($this->read, $found[1]);
            $message = $this->assemble($found[0], $limit);
            if ($message !== null) {
                return $message;
            }
        }
        return '';
    }

    /** Whether the head of the next frame is not one that may come now (RFC 6455, 5.1, 5.2, 5.4, 5.5; RFC 7692, 6). */
    private function violatesProtocol(): bool
    {
        if (strlen($this->read) < 2) {
            return false;
        }
        [$first, $second] = [ord($this->read[0]), ord($this->read[1])];
        $opcode = $first & 0x0f;
        $beginsMessage = $opcode === WEBSOCKET_OPCODE_TEXT || $opcode === WEBSOCKET_OPCODE_BINARY;
        $reserved = $beginsMessage && !empty($this->setting['websocket_compression']) ? 0x30 : 0x70;
        $isExpected = match ($opcode) {
            WEBSOCKET_OPCODE_TEXT, WEBSOCKET_OPCODE_BINARY => $this->begun === null,
            WEBSOCKET_OPCODE_CONTINUATION => $this->begun !== null,
            WEBSOCKET_OPCODE_CLOSE, WEBSOCKET_OPCODE_PING, WEBSOCKET_OPCODE_PONG => $first >= 0x80 && ($second & 0x7f) < 126,
            default => false,
        };
        return !$isExpected || ($first & $reserved) !== 0 || ($second >= 0x80) === $this->isClient;
    }

    /** Ends the connection with this status (RFC 6455, 7.1.7); nothing is read of it or sent to it any more. */
    private function fail(int $status, int $error): string
    {
        $this->errCode = $error;
        $this->hasFailed = true;
        $this->read = '';
        $this->begun = null;
        $this->send(pack('n', $status), WEBSOCKET_OPCODE_CLOSE, SWOOLE_WEBSOCKET_FLAG_FIN);
        $this->socket->shutdown(1);
        return '';
    }

    private function assemble(Frame $frame, int $limit): Frame|string|null
    {
        $frame->fd = $this->socket->fd;
        if ($frame->opcode === WEBSOCKET_OPCODE_PING && empty($this->setting['open_websocket_ping_frame'])) {
            $this->send($frame->data, WEBSOCKET_OPCODE_PONG, SWOOLE_WEBSOCKET_FLAG_FIN);
            return null;
        }
        if ($frame->opcode === WEBSOCKET_OPCODE_PONG && empty($this->setting['open_websocket_pong_frame'])) {
            return null;
        }
        if ($frame instanceof CloseFrame) {
            return $this->close($frame);
        }
        if ($frame->opcode >= WEBSOCKET_OPCODE_CLOSE) {
            return $frame;
        }
        [$opcode, $flags, $data] = $this->begun ?? [$frame->opcode, $frame->flags, ''];
        $data .= $frame->data;
        if (strlen($data) > $limit) {
            return $this->fail(SWOOLE_WEBSOCKET_CLOSE_MESSAGE_TOO_BIG, SWOOLE_ERROR_PACKAGE_LENGTH_TOO_LARGE);
        }
        if (!$frame->finish) {
            $this->begun = [$opcode, $flags, $data];
            return null;
        }
        $this->begun = null;
        if ($flags & SWOOLE_WEBSOCKET_FLAG_COMPRESS) {
            // RFC 7692, 7.2.2: the end of the last block, which is not sent; then an empty block that is the last.
            $data = @gzinflate("$data\0\0\xff\xff\3\0", $limit + 1);
            // Its limit is that of a buffer, which may grow beyond it.
            if (is_string($data) && strlen($data) > $limit) {
                return $this->fail(SWOOLE_WEBSOCKET_CLOSE_MESSAGE_TOO_BIG, SWOOLE_ERROR_PACKAGE_LENGTH_TOO_LARGE);
            }
        }
        if ($data === false || $opcode === WEBSOCKET_OPCODE_TEXT && !is_utf8($data)) {
            return $this->fail(SWOOLE_WEBSOCKET_CLOSE_MESSAGE_ERROR, SWOOLE_ERROR_PROTOCOL_ERROR);
        }
        $frame->opcode = $opcode;
        $frame->flags = SWOOLE_WEBSOCKET_FLAG_FIN | ($flags & SWOOLE_WEBSOCKET_FLAG_COMPRESS);
        $frame->data = $data;
        return $frame;
    }

    private function close(CloseFrame $frame): Frame|string
    {
        $length = strlen($frame->data);
        // RFC 6455, 7.4: these are registered, or for applications.
        $isStatus = $length === 0 || $length > 1 && ($frame->code >= 3000 && $frame->code < 5000 || $frame->code >= 1000 && $frame->code <= 1014 && !in_array($frame->code, [1004, 1005, 1006], true));
        if (!$isStatus || !is_utf8($frame->reason)) {
            return $this->fail($isStatus ? SWOOLE_WEBSOCKET_CLOSE_MESSAGE_ERROR : SWOOLE_WEBSOCKET_CLOSE_PROTOCOL_ERROR, SWOOLE_ERROR_PROTOCOL_ERROR);
        }
        $this->send($frame->data, WEBSOCKET_OPCODE_CLOSE, SWOOLE_WEBSOCKET_FLAG_FIN);
        return empty($this->setting['open_websocket_close_frame']) ? '' : $frame;
    }
}

function is_utf8(string $text): bool
{
    return preg_match('//u', $text) === 1;
}

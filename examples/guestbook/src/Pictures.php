<?php

declare(strict_types=1);

namespace Guestbook;

use finfo;

/**
 * Pictures that visitors upload. They lie outside of the public directory under random names, so
 * nothing that was uploaded is ever run or found by guessing.
 */
final readonly class Pictures
{
    public const MAX_BYTES = 2 * 1024 * 1024;
    private const MAX_SIDE = 8000;
    private const TYPES = [
        'image/jpeg' => 'jpg', 'image/png' => 'png', 'image/gif' => 'gif', 'image/webp' => 'webp',
    ];

    public function __construct(private string $directory)
    {
    }

    /**
     * Keeps an upload; null when none was sent.
     *
     * @param array{error: int, size: int, tmp_name: string} $upload an element of $_FILES
     */
    public function keep(array $upload): ?string
    {
        $tooLarge = 'The picture is larger than 2 MB.';
        match ($upload['error']) {
            UPLOAD_ERR_OK, UPLOAD_ERR_NO_FILE => null,
            UPLOAD_ERR_INI_SIZE, UPLOAD_ERR_FORM_SIZE => throw new Problem(413, $tooLarge),
            UPLOAD_ERR_PARTIAL => throw new Problem(400, 'The picture did not arrive whole.'),
            default => throw new Problem(500, 'The picture could not be received.'),
        };
        if ($upload['error'] === UPLOAD_ERR_NO_FILE) {
            return null;
        }
        if ($upload['size'] > self::MAX_BYTES) {
            throw new Problem(413, $tooLarge);
        }
        $name = bin2hex(random_bytes(16)) . '.' . self::extension($upload['tmp_name']);
        if (!move_uploaded_file($upload['tmp_name'], "{$this->directory}/$name")) {
            throw new Problem(500, 'The picture could not be stored.');
        }
        return $name;
    }

    /** By content alone: the type that the browser sends is not trusted. */
    private static function extension(string $path): string
    {
        $type = (new finfo(FILEINFO_MIME_TYPE))->file($path);
        $size = @getimagesize($path);
        if (!isset(self::TYPES[$type]) || $size === false || $size['mime'] !== $type) {
            throw new Problem(415, 'That is not a picture: JPEG, PNG, GIF and WebP are taken.');
        }
        if (max($size[0], $size[1]) > self::MAX_SIDE) {
            throw new Problem(422, 'The picture has more than ' . self::MAX_SIDE . ' pixels on a side.');
        }
        return self::TYPES[$type];
    }

    /** A picture never changes under its name, so a browser need not ask twice. */
    public function send(string $name, Request $request): Response
    {
        $type = array_search(pathinfo($name, PATHINFO_EXTENSION), self::TYPES, true);
        $path = "{$this->directory}/$name";
        if ($type === false || !is_file($path)) {
            throw new Problem(404, 'There is no such picture.');
        }
        $headers = ['Cache-Control: public, max-age=31536000, immutable', "ETag: \"$name\""];
        if (($_SERVER['HTTP_IF_NONE_MATCH'] ?? '') === "\"$name\"") {
            return new Response(304, $headers);
        }
        $headers = [
            ...$headers, "Content-Type: $type", 'Content-Length: ' . filesize($path),
            'X-Content-Type-Options: nosniff', "Content-Security-Policy: default-src 'none'",
        ];
        return new Response(200, $headers, file_get_contents($path));
    }
}

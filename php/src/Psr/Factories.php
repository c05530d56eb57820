<?php

declare(strict_types=1);

namespace Outboard\Psr;

use Psr\Http\Message\ServerRequestFactoryInterface;
use Psr\Http\Message\StreamFactoryInterface;
use Psr\Http\Message\UploadedFileFactoryInterface;
use Psr\Http\Message\UriFactoryInterface;

/** The makers of PSR-7 objects (PSR-17). */
final class Factories
{
    /** One class for all four, or one class for each: requests, URIs, streams, uploaded files. */
    private const KNOWN = [
        ['Nyholm\Psr7\Factory\Psr17Factory'],
        ['GuzzleHttp\Psr7\HttpFactory'],
        [
            'Slim\Psr7\Factory\ServerRequestFactory',
            'Slim\Psr7\Factory\UriFactory',
            'Slim\Psr7\Factory\StreamFactory',
            'Slim\Psr7\Factory\UploadedFileFactory',
        ],
        [
            'Laminas\Diactoros\ServerRequestFactory',
            'Laminas\Diactoros\UriFactory',
            'Laminas\Diactoros\StreamFactory',
            'Laminas\Diactoros\UploadedFileFactory',
        ],
    ];

    public function __construct(
        public readonly ServerRequestFactoryInterface $requests,
        public readonly UriFactoryInterface $uris,
        public readonly StreamFactoryInterface $streams,
        public readonly UploadedFileFactoryInterface $files,
    ) {
    }

    /** Those of one object which makes everything, as nyholm/psr7 and guzzlehttp/psr7 have it. */
    public static function of(
        ServerRequestFactoryInterface&UriFactoryInterface&StreamFactoryInterface&UploadedFileFactoryInterface $all,
    ): self {
        return new self($all, $all, $all, $all);
    }

    /** Those of the first PSR-7 package that is installed. */
    public static function find(): self
    {
        foreach (self::KNOWN as $classes) {
            if (class_exists($classes[0])) {
                // @mago-expect analysis:unknown-class-instantiation - from() checks what they make
                return self::from(array_map(static fn (string $class): object => new $class(), $classes));
            }
        }
        throw new \LogicException('no PSR-7 package is installed: run `composer require nyholm/psr7`');
    }

    /** @param non-empty-list<object> $made */
    private static function from(array $made): self
    {
        $requests = $made[0];
        $uris = $made[1] ?? $requests;
        $streams = $made[2] ?? $requests;
        $files = $made[3] ?? $requests;
        \assert($requests instanceof ServerRequestFactoryInterface && $uris instanceof UriFactoryInterface);
        \assert($streams instanceof StreamFactoryInterface && $files instanceof UploadedFileFactoryInterface);
        return new self($requests, $uris, $streams, $files);
    }
}

<?php

declare(strict_types=1);

namespace Outboard\Tests\Psr;

use Outboard\Psr\Factories;
use Outboard\Psr\RequestReader;
use Outboard\Testing\FakeRequest;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\UploadedFileInterface;

final class RequestReaderTest extends PsrTestCase
{
    /** @dataProvider packages */
    public function testTheRequestLineAndHeadersArrive(Factories $factories): void
    {
        $request = self::read($factories, new FakeRequest(
            'PATCH',
            '/caf%C3%A9/a%2Fb?q=a+b&list[]=1',
            ['Host' => 'shop.example:8443', 'X-Mixed-Case' => 'v', 'Content-Type' => 'text/plain'],
            ['sid' => 'abc'],
            body: 'raw body',
            server: ['HTTPS' => 'on', 'SERVER_PROTOCOL' => 'HTTP/2', 'SERVER_PORT' => '8443'],
        ));
        self::assertSame('PATCH', $request->getMethod());
        self::assertSame('/caf%C3%A9/a%2Fb', $request->getUri()->getPath());
        self::assertSame('https', $request->getUri()->getScheme());
        self::assertSame('shop.example', $request->getUri()->getHost());
        self::assertSame(8443, $request->getUri()->getPort());
        self::assertSame('2', $request->getProtocolVersion());
        self::assertSame(['q' => 'a b', 'list' => ['1']], $request->getQueryParams());
        self::assertSame('v', $request->getHeaderLine('x-mixed-case'));
        self::assertSame(['shop.example:8443'], $request->getHeader('Host'));
        self::assertSame(['sid' => 'abc'], $request->getCookieParams());
        self::assertSame('127.0.0.1', $request->getServerParams()['REMOTE_ADDR']);
        self::assertSame('raw body', (string) $request->getBody());
    }

    /** @dataProvider packages */
    public function testOnlyFormsHaveAParsedBody(Factories $factories): void
    {
        $headers = ['Host' => 'a', 'Content-Type' => 'application/x-www-form-urlencoded; charset=utf-8'];
        $form = self::read($factories, new FakeRequest('POST', '/', $headers, form: ['a' => ['1', '2']]));
        self::assertSame(['a' => ['1', '2']], $form->getParsedBody());
        $json = self::read($factories, new FakeRequest('PUT', '/', ['Host' => 'a', 'Content-Type' => 'text/plain'], body: '{}'));
        self::assertNull($json->getParsedBody());
    }

    /** @dataProvider packages */
    public function testUploadsKeepTheShapeOfTheirNames(Factories $factories): void
    {
        $path = tempnam(sys_get_temp_dir(), 'outboard');
        self::assertIsString($path);
        file_put_contents($path, 'content');
        $request = self::read($factories, new FakeRequest('POST', files: [
            'one' => ['name' => '1.txt', 'type' => 'text/plain', 'tmp_name' => $path, 'error' => UPLOAD_ERR_OK, 'size' => 7],
            'deep' => [
                'name' => ['a' => ['x.txt', 'y.txt']],
                'type' => ['a' => ['text/plain', '']],
                'tmp_name' => ['a' => [$path, '']],
                'error' => ['a' => [UPLOAD_ERR_OK, UPLOAD_ERR_NO_FILE]],
                'size' => ['a' => [7, 0]],
            ],
        ]));
        $files = $request->getUploadedFiles();
        self::assertInstanceOf(UploadedFileInterface::class, $files['one']);
        self::assertSame('1.txt', $files['one']->getClientFilename());
        self::assertSame('content', (string) $files['one']->getStream());
        self::assertIsArray($files['deep']);
        self::assertIsArray($files['deep']['a']);
        [$first, $second] = $files['deep']['a'];
        self::assertInstanceOf(UploadedFileInterface::class, $first);
        self::assertInstanceOf(UploadedFileInterface::class, $second);
        self::assertSame('x.txt', $first->getClientFilename());
        self::assertSame(UPLOAD_ERR_NO_FILE, $second->getError());
        unlink($path);
    }

    /** @dataProvider packages */
    public function testTargetsOfEveryFormAreUnderstood(Factories $factories): void
    {
        $absolute = self::read($factories, new FakeRequest('GET', 'http://proxied.example/x?y=1'));
        self::assertSame('proxied.example', $absolute->getUri()->getHost());
        self::assertSame('/x', $absolute->getUri()->getPath());
        $asterisk = self::read($factories, new FakeRequest('OPTIONS', '*'));
        self::assertSame('*', $asterisk->getRequestTarget());
    }

    public function testHeadersWhoseNamesAreNumbersArrive(): void
    {
        $request = self::read(Factories::find(), new FakeRequest(server: ['HTTP_0' => 'zero', 'HTTP_123' => 'odd', 'HTTP__1' => 'negative', 'HTTP_' => 'nameless', 'HTTP_Z' => 'after']));
        self::assertSame(['zero', 'odd', 'negative', 'after'], array_map($request->getHeaderLine(...), ['0', '123', '-1', 'Z']));
        self::assertCount(5, $request->getHeaders());
    }

    public function testAnInstalledPackageIsDetected(): void
    {
        self::assertInstanceOf(\Nyholm\Psr7\Factory\Psr17Factory::class, Factories::find()->requests);
    }

    private static function read(Factories $factories, FakeRequest $fake): ServerRequestInterface
    {
        $fake->import();
        return (new RequestReader($factories))->read($fake->open());
    }
}

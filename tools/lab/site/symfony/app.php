<?php
// The application without its front controllers; Debian's autoloaders stand in for Composer's.
require_once 'Symfony/Bundle/FrameworkBundle/autoload.php';
require_once 'Symfony/Bundle/TwigBundle/autoload.php';
require_once 'Symfony/Component/Mime/autoload.php';
require_once __DIR__ . '/src/Kernel.php';
require_once __DIR__ . '/src/Page.php';

return static function (): App\Kernel {
    $kernel = new App\Kernel('prod', false);
    $kernel->boot();
    return $kernel;
};

<?php

declare(strict_types=1);

namespace shop\controller;

final class harbour extends common
{
}

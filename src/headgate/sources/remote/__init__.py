"""Operations of remote servers as a source."""
